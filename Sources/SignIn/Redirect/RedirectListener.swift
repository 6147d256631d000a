// SPDX-License-Identifier: Apache-2.0

import CountersignLoopback
import Dispatch
import Glibc
import Synchronization

/// Waits on the loopback interface for the browser to return with the authorization response (RFC 8252 §7.3).
///
/// The port is bound from ``init(_:)`` on. A request that is not the response is refused, and the wait goes on: another
/// process may connect first. So are the connections of other users, who could otherwise answer in the provider's
/// place. Limited in the number and duration of connections and in the size of requests.
package final class RedirectListener: Sendable {
    /// Who may connect, and who has heard of it.
    package struct Admission: Sendable {
        /// The user whose browser it is.
        let user: UInt32
        /// The user of the process at the other end of an accepted connection; nil if the kernel does not say.
        let owner: @Sendable (Int32) -> UInt32?
        /// Called for the first connection that is refused, with its user.
        let refused: @Sendable (UInt32?) -> Void

        package init(
            user: UInt32 = getuid(),
            owner: @escaping @Sendable (Int32) -> UInt32? = { SocketOwner.ofPeer(of: $0)?.uid },
            refused: @escaping @Sendable (UInt32?) -> Void = { _ in }
        ) {
            self.user = user
            self.owner = owner
            self.refused = refused
        }

        /// Without an answer of the kernel, the connection's owner is unknown.
        func admits(_ descriptor: Int32) -> (isAdmitted: Bool, owner: UInt32?) {
            let owner = owner(descriptor)
            return (owner == user, owner)
        }
    }

    package let address: RedirectAddress
    private let admission: Admission
    private let sockets: RedirectSockets
    /// A pipe. Closing the second end makes the first one readable and ends the wait.
    private let wake: (waiting: Int32, ending: Int32)
    private let state = Mutex(State())
    /// Signalled when the browser has its page, or is no longer waited for.
    private let ended = DispatchSemaphore(value: 0)

    private struct State {
        var hasStarted = false
        var isEnded = false
    }

    /// How long a browser may take to fetch the last page, in seconds.
    static let pageSeconds = 2

    /// Listens from now on.
    package init(_ address: RedirectAddress, _ admission: Admission = Admission()) throws(SignInError) {
        self.address = address
        self.admission = admission
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
        // By the program; connections arrive at the loop.
        precondition(isFirst, "a listener waits for one response")
        DispatchQueue(label: "countersign.redirect").async { [self] in
            var loop = RedirectLoop(sockets, address, admission, wake: wake.waiting, judge: judge)
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
