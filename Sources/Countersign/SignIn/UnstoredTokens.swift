// SPDX-License-Identifier: Apache-2.0

import CountersignVault

/// New tokens of a sign-in that the vault does not accept, because the disk is full or another process does not release
/// it. The provider may no longer accept others, so the lock is held until they are stored: another process would use
/// the refresh token that they replace.
struct UnstoredTokens: Sendable {
    let renewal: SignInRenewal
    let received: SignInRenewal.Received
    private let lock: RenewalLock
    /// Why they are not stored.
    let reason: String

    var record: SignInRecord { renewal.record }

    init(_ renewal: SignInRenewal, _ received: SignInRenewal.Received, _ lock: RenewalLock, reason: String) {
        self.renewal = renewal
        self.received = received
        self.lock = lock
        self.reason = "the new one cannot be stored: \(reason)"
        lock.record(.unstored(reason))
    }
}

extension SignInRenewals {
    /// The longest pause between two attempts to store tokens.
    private static let longestStoringPause = Duration.seconds(60)

    /// Keeps tokens, and tries to store them until that succeeds or this process ends.
    func keepUnstored(_ tokens: UnstoredTokens) {
        let name = tokens.record.name
        state.withLock { $0.unstored[name] = tokens }
        logger.error(
            "\(tokens.reason): the sign-in \"\(name)\" is lost if this process ends before that is possible",
            metadata: ["hint": "`countersign status` shows whether new tokens are stored"])
        Task.detached { [self] in
            var pause = Duration.seconds(1)
            while true {
                try? await Task.sleep(for: pause)
                guard state.withLock({ $0.unstored[name] != nil && !$0.isStopped }) else { return }
                if await storeAgain(tokens) == nil { return }
                pause = min(pause * 2, Self.longestStoringPause)
            }
        }
    }

    /// Returns why the tokens cannot be stored; nil if they are stored, or no longer need to be.
    private func storeAgain(_ tokens: UnstoredTokens) async -> String? {
        let name = tokens.record.name
        do {
            let stored = try await onQueue { try tokens.renewal.store(tokens.received) }
            logger.notice("\(stored == nil ? "stored" : "renewed and stored") the tokens of \"\(name)\"")
        } catch let error as SignInRenewal.Superseded {
            logger.notice("\(error.detail); its tokens are discarded")
        } catch let error as VaultError where error.code == .invalidRecord {
            _ = await discard(tokens.received, of: tokens.renewal, because: error)
        } catch {
            return Self.text(error)
        }
        state.withLock { $0.unstored[name] = nil }
        await applyChange()
        return nil
    }

    /// Ends a sign-in whose new tokens the vault can never store, and revokes them: the provider may accept no others.
    /// Returns the reason.
    func discard(
        _ received: SignInRenewal.Received, of renewal: SignInRenewal, because error: VaultError
    ) async -> String {
        let name = renewal.record.name
        let reason = "the provider has sent tokens that cannot be stored: \(error.detail)"
        do {
            try await onQueue { try renewal.end(because: reason, received) }
            reportEnd(of: name, reason)
        } catch {
            logger.warning("the end of the sign-in \"\(name)\" cannot be stored: \(Self.text(error))")
        }
        if let warning = await renewal.revoke(received) {
            logger.warning("the provider has not revoked the new tokens of \"\(name)\": \(warning)")
        }
        return reason
    }

    /// This process is about to end.
    func storeForTheLastTime() async {
        for (name, tokens) in state.withLock({ $0.unstored }) {
            guard let reason = await storeAgain(tokens) else { continue }
            logger.error(
                "the new tokens of the sign-in \"\(name)\" are lost: \(reason)",
                metadata: ["hint": "sign in again with `countersign enroll \(name)`"])
        }
    }
}
