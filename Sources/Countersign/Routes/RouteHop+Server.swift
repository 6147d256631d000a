// SPDX-License-Identifier: Apache-2.0

package import CountersignHome
package import CountersignReporting

extension RouteHop {
    /// The routes that the home's running server reports; nil if no server runs, or it does not know routes. Throws the
    /// server's reason if it has no next hop.
    package static func all(to url: String, byServerOf home: Home) throws -> [RouteHop]? {
        guard let status = try? ControlSocket.ask(.status, of: home), status.knowsRoutes == true else { return nil }
        return try ControlSocket.ask(.route(url: url), of: home).route
    }
}
