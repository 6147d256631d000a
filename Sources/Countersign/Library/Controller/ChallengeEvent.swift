// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// An action of a ``ChallengeController``, or of a `ChallengeProxy` that uses it. Later versions may add kinds, so
/// include a `default` in a `switch`.
public enum ChallengeEvent: Equatable, Sendable {
    /// A challenge was answered with the credential or identity of that name. A controller reports this when it returns
    /// the credential, the proxy when the site has accepted the password. Credentials that the proxy sends
    /// pre-emptively are not reported.
    case answered(ProtectionSpace, with: String)
    /// A challenge was not answered, for the reason in the error; nil if challenges of its kind are never answered.
    case handedBack(ProtectionSpace, ChallengeError?)
    /// The site rejected the credential or identity of that name. A credential is not sent there again until it
    /// changes.
    case rejected(ProtectionSpace, credential: String)
    /// The certificate of the identity of that name was renewed.
    case refreshed(identity: String)
    /// A certificate was due for renewal, which failed.
    case notRefreshed(identity: String, ChallengeError)
}

/// The event streams of a controller.
package typealias Listeners = EventStreams<ChallengeEvent>

/// Any number of streams of the same events.
package final class EventStreams<Event: Sendable>: Sendable {
    /// How many events are buffered for a slow listener. The oldest are dropped beyond that.
    static var capacity: Int { 256 }

    private struct State {
        var next: UInt64 = 0
        var continuations: [UInt64: AsyncStream<Event>.Continuation] = [:]
    }

    private let state = Mutex(State())

    /// A stream of all events from now on.
    func stream() -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self, bufferingPolicy: .bufferingNewest(Self.capacity))
        let number = state.withLock { state in
            state.next &+= 1
            state.continuations[state.next] = continuation
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.continuations.removeValue(forKey: number) }
        }
        return stream
    }

    /// Sends an event to all streams. `event` is not evaluated without a stream.
    package func tell(_ event: @autoclosure () -> Event) {
        let listening = state.withLock { Array($0.continuations.values) }
        guard !listening.isEmpty else { return }
        let event = event()
        for continuation in listening { continuation.yield(event) }
    }

    /// Ends all streams.
    func finish() {
        for continuation in state.withLock({ Array($0.continuations.values) }) { continuation.finish() }
    }

    deinit { finish() }
}
