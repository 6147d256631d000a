// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Runs the calls to one server on a dispatch queue of their own, because libcurl blocks.
///
/// Unchecked because of the session and its objects: only `queue`, which is serial, uses them.
final class EnrollmentWorker: @unchecked Sendable {
    private let queue = DispatchQueue(label: "countersign.enrollment")
    private let session: CurlSession
    private let tls: ServerTLS

    init(_ session: CurlSession, tls: ServerTLS) {
        self.session = session
        self.tls = tls
    }

    /// Runs `body` after all earlier calls. The call of a cancelled task ends within a second.
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
