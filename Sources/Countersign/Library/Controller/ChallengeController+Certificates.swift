// SPDX-License-Identifier: Apache-2.0

import CountersignEnrollment
import CountersignHome
import Glibc
import CountersignVault

/// How often to ask a certification authority that has not decided yet.
public struct PendingRetry: Equatable, Sendable {
    /// The total number of requests, at least 1.
    public var attempts: Int
    /// The time between requests, at most a day; nil for the authority's `Retry-After`.
    public var interval: Duration?

    /// Creates a retry policy, by default with ten requests at the intervals that the authority asks for.
    public init(attempts: Int = 10, interval: Duration? = nil) {
        self.attempts = attempts
        self.interval = interval
    }
}

extension ChallengeController {
    /// Obtains a new certificate for the identity `name`, or for all enrolled identities, whether or not they are due.
    ///
    /// If the certification authority has not decided yet, asks again according to `pendingRetry`. Throws
    /// ``ChallengeError``: `refreshPending` if it still has not decided, `nothingToAnswerWith` if no identity of that
    /// name is enrolled, `refreshFailed`, and the codes of the vault. Throws `CancellationError` if the task is
    /// cancelled. Identities are renewed in the order of their names; after an error, the remaining ones are unchanged.
    public func fetchNewCertificates(named name: String? = nil, pendingRetry: PendingRetry = PendingRetry())
        async throws
    {
        _ = await policyNow()
        guard let vault = keeper.vault else {
            throw ChallengeError(
                .nothingToAnswerWith, "the home has no vault, and therefore no identity",
                hint: "enrol one with `countersign certificate enroll NAME --est URL`")
        }
        let renewal = IdentityRenewal(
            home: keeper.home, vault: vault, renewals: signInRenewals, now: Self.now)
        for name in name.map({ [$0] }) ?? vault.contents.plannedNames {
            do {
                try await fetch(name, renewal, pendingRetry)
            } catch {
                // A cancelled refresh may fail with any error.
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
                        hint: "try again later; the request remains pending")
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
    @Sendable package static func now() -> Int64 { Int64(time(nil)) }
}

extension Listeners {
    /// Reports the end of a renewal that a ``RenewalKeeper`` started.
    @Sendable func renewalEnded(_ name: String, _ error: (any Error)?) {
        guard let error else { return tell(.refreshed(identity: name)) }
        tell(.notRefreshed(identity: name, ChallengeError(refreshing: error)))
    }
}

extension ChallengeError {
    /// Converts an error of a renewal.
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
            // An error of the system or the vault.
            self.init(error)
        }
    }
}
