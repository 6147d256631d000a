// SPDX-License-Identifier: Apache-2.0

/// An object with time limits. It is called once per second, and when the proxy stops.
protocol TimeWatched: AnyObject {
    /// The client connection that this object belongs to, if it counts as one in a list of the clients.
    var clientSession: ClientSession? { get }
    /// `now` is ``LoopServices/now``.
    func secondPassed(now: UInt64)
    /// The proxy is stopping: finish the exchanges in progress, then close.
    func drain()
    /// The time for finishing is over: close now.
    func abort()
}

extension TimeWatched {
    var clientSession: ClientSession? { nil }
}
