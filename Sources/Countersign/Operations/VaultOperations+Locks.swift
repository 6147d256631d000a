// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome

extension VaultOperations {
    /// Waits until no token of the sign-in is being renewed, and prevents further renewals.
    func renewalLock(
        _ name: String, _ dialogue: OperationDialogue, patience: Duration
    ) throws -> RenewalLock {
        guard let lock = try acquire(RenewalLock.name(ofSignIn: name), dialogue, patience) else {
            throw CountersignError(
                .refused, "another process is renewing the access token of \(name.debugDescription)",
                hint: "try again; `countersign status` shows what it waits for")
        }
        return lock
    }

    /// Waits until no certificate of that name is being requested, and prevents further requests. The caller holds the
    /// lock of the sign-in already.
    func identityLock(_ name: String, _ dialogue: OperationDialogue) throws -> RenewalLock {
        guard let lock = try acquire(name, dialogue, Self.renewalPatience) else {
            throw CountersignError(
                .refused, "another process is requesting a certificate for the identity \(name.debugDescription)",
                hint: "try again when that is done")
        }
        return lock
    }

    func acquire(
        _ name: String, _ dialogue: OperationDialogue, _ patience: Duration
    ) throws -> RenewalLock? {
        do {
            return try Blocking.run(isAbandoned: dialogue.isAbandoned) { [home] in
                try await RenewalLock.acquire(name, of: home, patience: patience) {
                    dialogue.report(.waitingForOtherProcess)
                }
            }
        } catch is CancellationError {
            throw Self.interrupted
        }
    }

    /// Longer than a renewal takes if every request to the provider takes its full time.
    static let renewalPatience = Duration.seconds(150)
    static let withoutEnd = Duration.seconds(1 << 40)

    static let interrupted = CountersignError(.refused, "the command was interrupted")
}
