// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A proxy, and the settings of the sessions that use it.
struct SessionRoute: Sendable {
    let link: ProxyLink
    let settings: SessionSettings
}

/// All routes, by number. Each has its own `URLProtocol` class, because a class is the only value that a configuration
/// accepts and a task can obtain from it. The classes are specialisations of one generic class, by numbers encoded as
/// types.
enum SessionRoutes {
    private static let routes = Mutex<[SessionRoute]>([])

    /// Adds a route, and returns its number.
    static func add(_ route: SessionRoute) -> Int {
        routes.withLock { routes in
            routes.append(route)
            return routes.count - 1
        }
    }

    static func route(_ number: Int) -> SessionRoute { routes.withLock { $0[number] } }
}

/// A natural number encoded as a type.
protocol RouteNumber: SendableMetatype {
    static var value: Int { get }
    static var digits: Int { get }
}

enum Zero: RouteNumber {
    static var value: Int { 0 }
    static var digits: Int { 0 }
}

enum Even<Low: RouteNumber>: RouteNumber {
    static var value: Int { Low.value }
    static var digits: Int { Low.digits + 1 }
}

enum Odd<Low: RouteNumber>: RouteNumber {
    static var value: Int { Low.value + 1 << Low.digits }
    static var digits: Int { Low.digits + 1 }
}
