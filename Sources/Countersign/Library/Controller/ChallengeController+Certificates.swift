// SPDX-License-Identifier: Apache-2.0

import CountersignEnrollment
import Glibc
import CountersignVault

/// How often an authority that says "not yet" is asked again.
public struct PendingRetry: Equatable, Sendable {
    /// How many times it is asked in all; at least 1.
    public var attempts: Int
    /// The time between two of them, a day at most; nil: as long as the authority wishes.
    public var interval: Duration?

    /// Ten attempts, as far apart as the authority wishes.
    public init(attempts: Int = 10, interval: Duration? = nil) {
        self.attempts = attempts
        self.interval = interval
    }
}

extension ChallengeController {
    /// Gets a new certificate for the identity called `name`, due or not; for every enrolled one when it is left out.
    ///
    /// An authority that says "not yet" is asked again as `pendingRetry` says. Throws ``ChallengeError``:
    /// `refreshPending` when it still says so at the end, `nothingToAnswerWith` where nothing of that name is enrolled,
    /// `refreshFailed` and the vault's codes; `CancellationError` in a task that is cancelled. The identities are then
    /// as they were, those before in the order of the names excepted.
    public func fetchNewCertificates(named name: String? = nil, pendingRetry: PendingRetry = PendingRetry())
        async throws
    {
        _ = await policyNow()
        guard let vault = keeper.vault else {
            throw ChallengeError(
                .nothingToAnswerWith, "the home has no vault, and so no identity",
                hint: "`countersign certificate enroll NAME --est https://…` enrols one")
        }
        let renewal = IdentityRenewal(home: keeper.home, vault: vault, now: Self.now)
        for name in name.map({ [$0] }) ?? vault.contents.plannedNames {
            do {
                try await fetch(name, renewal, pendingRetry)
            } catch {
                // Whatever a cancelled refresh ran into.
                try Task.checkCancellation()
                let error = ChallengeError(refreshing: error)
                listeners.tell(.notRefreshed(identity: name, error))
                throw error
            }
        }
    }

    private func fetch(_ name: String, _ renewal: IdentityRenewal, _ retry: PendingRetry) async throws {
        var options = IdentityRenewal.Options()
        options.patienceSeconds = 0
        var attempts = 1
        while true {
            switch try await renewal.refresh(name, options) {
            case .renewed:
                return await refreshed(name)
            case .pending(let until):
                guard attempts < retry.attempts else {
                    throw ChallengeError(
                        .refreshPending,
                        "the authority of identity \"\(name)\" has not decided yet, after \(attempts) attempts",
                        hint: "try again later: what was asked for stays asked for")
                }
                attempts += 1
                let wish = retry.interval ?? max(.seconds(1), .seconds(until) - .seconds(Self.now()))
                try await Task.sleep(for: min(max(.zero, wish), .seconds(86_400)))
            }
        }
    }

    private func refreshed(_ name: String) async {
        await reading { $0.refresh(force: true) }
        listeners.tell(.refreshed(identity: name))
    }

    /// Seconds since 1970.
    @Sendable static func now() -> Int64 { Int64(time(nil)) }
}

extension Listeners {
    /// Reports the end of a renewal that a ``RenewalKeeper`` started.
    @Sendable func renewalEnded(_ name: String, _ error: (any Error)?) {
        guard let error else { return tell(.refreshed(identity: name)) }
        tell(.notRefreshed(identity: name, ChallengeError(refreshing: error)))
    }
}

extension ChallengeError {
    /// `error` of a refresh, in the words of the API.
    init(refreshing error: any Error) {
        switch error {
        case let error as EnrollmentError:
            self.init(.refreshFailed, error.detail, hint: error.hint)
        case let error as CountersignError where error.code != .environment:
            self.init(
                error.code == .unknownName ? .nothingToAnswerWith : .refreshFailed, error.detail, hint: error.hint)
        case is CredentialRefused:
            let diagnostic = Diagnostic.all(in: error).first
            self.init(.refreshFailed, diagnostic?.message ?? "\(error)", hint: diagnostic?.hint)
        default:
            // Of the system, and no server's fault.
            self.init(error)
        }
    }
}
