// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignHome
import CountersignOAuth
import CountersignVault
import Dispatch
import Logging

extension SignInRenewals {
    /// While the token is valid, it is used although it could not be renewed.
    func outcome(
        of record: SignInRecord, _ reason: TokenRenewer.Reason, _ detail: String
    ) -> TokenRenewer.Outcome {
        guard case .expired = reason else {
            return .unavailable(
                reason: "the access token of \"\(record.name)\" is not valid any more and cannot be renewed: \(detail)")
        }
        if record.expires > now() { return .unchanged }
        return .unavailable(
            reason: "the access token of \"\(record.name)\" has expired and cannot be renewed: \(detail)")
    }

    func failed(_ name: String, _ error: any Error) -> TokenRenewer.Outcome {
        let detail = Self.text(error)
        logger.warning("the access token of \"\(name)\" cannot be renewed: \(detail)")
        return .unavailable(reason: "the access token of \"\(name)\" cannot be renewed: \(detail)")
    }

    func reportEnd(of name: String, _ reason: String) {
        logger.warning(
            "the sign-in \"\(name)\" has ended: \(DirectoryError.explained(reason, signsIn: true))",
            metadata: ["hint": "sign in again with `countersign enroll \(name)`"])
    }

    static func text(_ error: any Error) -> String {
        Diagnostic.all(in: error).map { DirectoryError.explained($0.message) }.joined(separator: "; ")
    }

    /// Makes a change to the vault take effect in the policy.
    func applyChange() async {
        try? await onQueue { [changed] in changed() }
    }

    /// Runs work that reads or writes files, or may wait for another process, off the threads of the concurrency pool.
    func onQueue<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "countersign.sign-in").async { continuation.resume(with: Result { try body() }) }
        }
    }
}
