// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// Waits on the loopback interface for the browser to return with the authorization response (RFC 8252 §7.3).
///
/// The port is bound from ``init(_:)`` on. A request that is not the response is refused, and the wait goes on: another
/// process may connect first. Limited in the number and duration of connections and in the size of requests.
package final class RedirectListener: Sendable {
    package let address: RedirectAddress
    private let sockets: RedirectSockets
    /// A pipe. Closing the second end makes the first one readable and ends the wait.
    private let wake: (waiting: Int32, ending: Int32)
    private let state = Mutex(State())
    /// Signalled when the browser has its page, or nobody waits for it.
    private let ended = DispatchSemaphore(value: 0)

    private struct State {
        var hasStarted = false
        var isEnded = false
    }

    /// How long a browser may take to fetch the last page, in seconds.
    static let pageSeconds = 2

    /// Listens from now on.
    package init(_ address: RedirectAddress) throws(SignInError) {
        self.address = address
        sockets = try RedirectSockets(for: address)
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            sockets.closeAll()
            throw SignInError(.environment, "cannot create a pipe: \(String(cString: strerror(errno)))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        wake = (ends[0], ends[1])
    }

    package var port: UInt16 { sockets.port }

    /// The redirect URI with the port that was chosen.
    package var uri: String { address.uri(port: port) }

    deinit {
        // A running loop refers to this object, so none is running.
        end()
        sockets.closeAll()
        close(wake.waiting)
    }

    /// Waits for a response that `judge` does not call foreign, and returns its encoded parameters. `judge` is called
    /// on another thread. Call it once. Throws `timedOut`, or `cancelled` after ``end()`` or if the task is cancelled.
    package func response(
        within limit: Duration, judge: @escaping @Sendable (String) -> RedirectVerdict
    ) async throws(SignInError) -> String {
        let result: Result<String, SignInError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                start(within: limit, judge: judge) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            end()
        }
        return try result.get()
    }

    /// The same on a thread of its own. `done` is called there, once.
    func start(
        within limit: Duration, judge: @escaping @Sendable (String) -> RedirectVerdict,
        done: @escaping @Sendable (Result<String, SignInError>) -> Void
    ) {
        let isFirst = state.withLock { state in
            defer { state.hasStarted = true }
            return !state.hasStarted
        }
        precondition(isFirst, "a listener waits for one response")
        DispatchQueue(label: "countersign.redirect").async { [self] in
            var loop = RedirectLoop(sockets, address, wake: wake.waiting, judge: judge)
            done(loop.waitForResponse(within: limit))
            loop.showPage(within: .seconds(Self.pageSeconds))
            ended.signal()
        }
    }

    /// Ends the wait.
    package func end() {
        let isFirst = state.withLock { state in
            defer { state.isEnded = true }
            return !state.isEnded
        }
        if isFirst { close(wake.ending) }
    }

    /// Waits until the browser has fetched the last page, for ``pageSeconds`` at most. Blocks.
    package func finish() {
        guard state.withLock({ $0.hasStarted }) else { return }
        ended.wait()
        ended.signal()
    }
}
