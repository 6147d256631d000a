// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignSignIn
package import Logging

/// How the windows of sign-ins and of their compliance services reach servers; see ``SignInAgent/embedded``.
///
/// The product `CountersignNIO` has another way: with its `SignInWindows.proxied`, the requests of a window go through
/// a proxy of your process. Pass it to ``SignIns``.
public struct SignInWindows: Sendable {
    /// A running proxy for one window.
    package struct Proxy: Sendable {
        /// The window's way to the proxy.
        package let door: EmbeddedAgent.Door
        /// Starts another proxy, which reports the responses to the pages of these origins.
        package let observing: @Sendable ([Origin], ResponseFeed) async throws -> SpecialURLSupport.Doors
        /// Stops the proxy.
        package let stop: @Sendable () async -> Void

        package init(
            door: EmbeddedAgent.Door,
            observing: @escaping @Sendable ([Origin], ResponseFeed) async throws -> SpecialURLSupport.Doors,
            stop: @escaping @Sendable () async -> Void
        ) {
            self.door = door
            self.observing = observing
            self.stop = stop
        }
    }

    /// Starts a proxy over a home that always has an interception CA. The flag is true if the home's keeper is not for
    /// the window alone; the renewals are those of the keeper's owner, if it has any.
    package typealias Start = @Sendable (PolicyKeeper, Bool, RenewalKeeper?, Logger) async throws -> Proxy

    /// Nil if the window connects itself.
    let start: Start?

    private init(_ start: Start?) { self.start = start }

    /// Windows with a proxy.
    package init(start: @escaping Start) { self.init(Optional(start)) }

    /// The window connects to servers itself: no challenge of a listed site is answered, only the system's anchors
    /// verify servers, and device management does not see the responses to a page.
    public static let direct = SignInWindows(nil)
}
