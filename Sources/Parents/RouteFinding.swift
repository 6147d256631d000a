// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// Finds the next hops of requests. Every event loop may call it.
package protocol RouteFinding: AnyObject, Sendable {
    /// The hops for a request, in the order in which to try them, if they are known at once: there is no script to ask,
    /// or its result is cached. A script sees `path` of an http URL, but not of an https URL.
    func knownRoute(to origin: Origin, path: String) -> [Route.Candidate]?

    /// The same, asking the scripts. Throws ``ParentsError`` if there is no next hop; it names the setting at fault.
    func findRoute(to origin: Origin, path: String) async throws(ParentsError) -> [Route.Candidate]

    /// No connection to the parent could be made.
    func parentFailed(_ parent: ParentProxy)

    /// The parent has accepted a connection.
    func parentAnswered(_ parent: ParentProxy)

    /// Changes with the settings, the scripts and the network. Idle connections of another version are dropped.
    var version: UInt64 { get }
}
