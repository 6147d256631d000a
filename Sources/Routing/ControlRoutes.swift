// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignParents
import Dispatch
import Synchronization

/// The routes of this process's own requests, which libcurl makes: sign-ins, enrolment, compliance and revocation. They
/// are a setting of the process, as the variables are that libcurl reads otherwise. Direct until they are set.
package enum ControlRoutes {
    package typealias Source = @Sendable () async throws(ParentsError) -> (any RouteFinding)?

    private enum State {
        case found((any RouteFinding)?)
        /// Not asked before there is a request.
        case waiting(Source)
    }

    private static let state = Mutex(State.found(nil))
    private static let ownRelay = Mutex<(any ControlRelay)?>(nil)

    /// Answers the parents; nil if they are not answered.
    package static var relay: (any ControlRelay)? {
        get { ownRelay.withLock { $0 } }
        set { ownRelay.withLock { $0 = newValue } }
    }

    package static func use(_ routes: (any RouteFinding)?) { state.withLock { $0 = .found(routes) } }

    /// `source` is called for the first request, and again for the next one if it throws.
    package static func use(whenNeeded source: @escaping Source) { state.withLock { $0 = .waiting(source) } }

    /// The hops for a request, in the order in which to try them. Blocks, so it must not be called on an event loop or
    /// in a task. Plain http to this machine never leaves it.
    package static func hops(to origin: Origin, path: String) throws(ParentsError) -> [NextHop] {
        let isLocal = HostText.isLoopback(origin.host)
        if origin.scheme == .http, isLocal { return [.direct] }
        let known = state.withLock { $0 }
        if case .found(nil) = known { return [.direct] }
        if case .found(let routes?) = known, let candidates = routes.knownRoute(to: origin, path: path) {
            return candidates.map(\.hop)
        }
        return try wait { () throws(ParentsError) in
            guard let routes = try await finder() else { return [.direct] }
            return try await routes.findRoute(to: origin, path: path).map(\.hop)
        }
    }

    package static func parentFailed(_ parent: ParentProxy) { current?.parentFailed(parent) }

    package static func parentAnswered(_ parent: ParentProxy) { current?.parentAnswered(parent) }

    private static var current: (any RouteFinding)? {
        state.withLock { if case .found(let routes) = $0 { routes } else { nil } }
    }

    /// The routes; nil if every connection is direct.
    package static func finder() async throws(ParentsError) -> (any RouteFinding)? {
        guard case .waiting(let source) = state.withLock({ $0 }) else { return current }
        let routes = try await source()
        state.withLock { $0 = .found(routes) }
        return routes
    }

    private static func wait(
        _ body: @escaping @Sendable () async throws(ParentsError) -> [NextHop]
    ) throws(ParentsError) -> [NextHop] {
        let outcome = Outcome()
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            let result: Result<[NextHop], ParentsError>
            do throws(ParentsError) { result = .success(try await body()) } catch { result = .failure(error) }
            outcome.value.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        return try outcome.value.withLock { $0 }.get()
    }

    private final class Outcome: Sendable {
        let value = Mutex(Result<[NextHop], ParentsError>.success([]))
    }
}
