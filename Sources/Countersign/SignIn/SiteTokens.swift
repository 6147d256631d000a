// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignOAuth
import CountersignVault

/// Access tokens for one site alone, without a person: the refresh token of the sign-in may suffice for claims that a
/// site requires, as for the claims challenges of Microsoft's identity platform.
extension SignInRenewals {
    /// How long a demand of a site is not repeated to the provider, in seconds: whether the provider refuses it or the
    /// site does not accept the token, the next attempt would end in the same way.
    private static let stepUpInterval: Int64 = 300
    /// How many different demands of one site are passed on in that time: a site can require other claims each time.
    private static let demandsOfSite = 3
    /// How many demands are remembered.
    private static let demands = 256

    /// The outcome if `used` is for one site alone, or one site requires such a token; nil if the sign-in's own token
    /// decides. The caller holds the lock, and the record is the newest.
    func siteToken(
        insteadOf used: CredentialReference, _ reason: TokenRenewer.Reason, _ record: SignInRecord,
        _ token: TokenCredential, in vault: OpenVault, _ lock: RenewalLock
    ) async -> TokenRenewer.Outcome? {
        let own = record.siteToken(with: used, vault.tagKey)
        if case .lacks(let stepUp, let origin) = reason {
            // Another request was faster.
            if let newer = record.siteToken(for: origin), newer != own, newer.stepUp == stepUp,
                newer.expires == 0 || newer.expires > now()
            {
                await applyChange()
                return .renewed(newer.token(named: record.name).tagged(with: vault.tagKey))
            }
            let resource = own.flatMap { record.demand(met: $0).resource }
            let demand = SiteDemand(stepUp, of: origin, resource: resource)
            let named = NamedDemand(name: record.name, demand: demand)
            guard mayAsk(named, at: now()) else { return .unchanged }
            switch await ask(for: demand, record, token, in: vault, lock) {
            case .obtained(let new): return .renewed(new)
            case .refused: return .unchanged
            case .unavailable:
                state.withLock { $0.stepUps[named] = nil }
                return .unchanged
            }
        }
        guard let own else { return nil }
        if case .expired = reason {
            switch await ask(for: record.demand(met: own), record, token, in: vault, lock) {
            case .obtained(let new): return .renewed(new)
            case .refused: break
            case .unavailable(let detail):
                // A person may have signed in for it: it is kept until the provider can be asked.
                if own.expires > now() { return .unchanged }
                return .unavailable(
                    reason: "the access token of \"\(record.name)\" for \(record.demand(met: own).origin) has expired "
                        + "and cannot be renewed: \(detail)")
            }
        }
        // The sign-in's own token takes its place. If it does not suffice, the site says so.
        try? await onQueue { try vault.update { try $0.removeSiteToken(own, of: record.name) } }
        await applyChange()
        return nil
    }

    private enum Answer {
        case obtained(TokenCredential)
        /// The provider issues no such token without a person, or the token is not stored.
        case refused
        /// The provider cannot be asked now.
        case unavailable(String)
    }

    /// A refusal never ends the sign-in: the refresh token may be valid for everything else.
    private func ask(
        for demand: SiteDemand, _ record: SignInRecord, _ token: TokenCredential, in vault: OpenVault,
        _ lock: RenewalLock
    ) async -> Answer {
        guard record.ended.isEmpty, record.refreshToken != nil else { return .refused }
        if isPaused(record, at: now()) { return .unavailable("the last attempt to renew a token of it has failed") }
        let renewal = SignInRenewal(
            record: record, token: token, firstVault: vault, renewals: self, demand: demand)
        lock.reserve()
        let (received, failure) = await renewal.ask()
        if let received {
            do {
                let stored = try await onQueue { try renewal.store(received) }
                await applyChange()
                if let stored {
                    logger.notice("obtained an access token of \"\(record.name)\" for \(demand.origin)")
                    return .obtained(stored)
                }
            } catch let error as VaultError where error.code == .invalidRecord {
                // The site's demand or its token is at fault, and not the sign-in.
                logger.warning("the token for \(demand.origin) cannot be stored: \(error.detail)")
                let rotated = SignInRenewal.Received(tokens: received.tokens, isWhole: false)
                _ = try? await onQueue { try renewal.store(rotated) }
            } catch is SignInRenewal.Superseded {
                return .refused
            } catch {
                keepUnstored(UnstoredTokens(renewal, received, lock, reason: Self.text(error)))
            }
        }
        if failure is CancellationError { return .unavailable("the proxy is stopping") }
        if let failure = failure as? OAuthError, failure.isTransient {
            pause(after: record)
            return .unavailable(Self.text(failure))
        }
        if let failure {
            logger.info(
                "the provider gives no token of \"\(record.name)\" for \(demand.origin) without you: \(Self.text(failure))"
            )
        }
        return .refused
    }

    /// A demand on one sign-in.
    struct NamedDemand: Hashable {
        let name: String
        let demand: SiteDemand
    }

    private func mayAsk(_ demand: NamedDemand, at time: Int64) -> Bool {
        state.withLock { state in
            state.stepUps = state.stepUps.filter { abs(time - $0.value) < Self.stepUpInterval }
            let ofSite = state.stepUps.keys.count {
                $0.name == demand.name && $0.demand.origin == demand.demand.origin
            }
            guard state.stepUps[demand] == nil, ofSite < Self.demandsOfSite else { return false }
            if state.stepUps.count >= Self.demands, let oldest = state.stepUps.min(by: { $0.value < $1.value }) {
                state.stepUps[oldest.key] = nil
            }
            state.stepUps[demand] = time
            return true
        }
    }
}
