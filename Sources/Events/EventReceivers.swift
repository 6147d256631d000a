// SPDX-License-Identifier: Apache-2.0

/// Receives what is counted about each request and tunnel. Called on the event loops; must not block.
package protocol RequestMeter: Sendable {
    /// `rule` is the list's `file:line`. `nanoseconds` is the time from the request's head to its end.
    func requestEnded(
        method: String, status: Int, decision: String, rule: String?, challenge: String?, check: RequestEvent.Check?,
        nanoseconds: UInt64)
    /// An event loop came `nanoseconds` too late to its work of every second.
    func eventLoopWasLate(nanoseconds: UInt64)
}

/// Keeps a lossless record of the uses of credentials. Called on the event loops, where writing a line is permitted.
package protocol CredentialUseRecorder: Sendable {
    /// Why no credential may be used now: uses must be recorded, and cannot. Nil if they can, or need not.
    var refusal: String? { get }
    func record(_ use: CredentialUseEvent)
    /// Called every second, by any thread. `now` is in monotonic seconds.
    func secondPassed(now: UInt64)
}
