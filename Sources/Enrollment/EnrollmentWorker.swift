// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// A thread for one server's calls: libcurl blocks, and no task or event loop is to.
///
/// Unchecked because of the session and what hangs on it: only `queue`, which is serial, touches them.
final class EnrollmentWorker: @unchecked Sendable {
    private let queue = DispatchQueue(label: "countersign.enrollment")
    private let session: CurlSession
    private let tls: ServerTLS

    init(_ session: CurlSession, tls: ServerTLS) {
        self.session = session
        self.tls = tls
    }

    /// Runs `body` behind what came before it. A cancelled task's call ends within a second.
    func run<Result: Sendable>(
        _ body: @escaping @Sendable (CurlSession, ServerTLS, Cancellation) throws(EnrollmentError) -> Result
    ) async throws(EnrollmentError) -> Result {
        let cancellation = Cancellation()
        let result: Swift.Result<Result, EnrollmentError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { continuation.resume(returning: self.result(of: body, cancellation)) }
            }
        } onCancel: {
            cancellation.cancel()
        }
        return try result.get()
    }

    private func result<Value>(
        of body: (CurlSession, ServerTLS, Cancellation) throws(EnrollmentError) -> Value, _ cancellation: Cancellation
    ) -> Swift.Result<Value, EnrollmentError> {
        do {
            return .success(try body(session, tls, cancellation))
        } catch {
            return .failure(error)
        }
    }
}
