// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// Something that a ``ChallengeController`` did, or a ``ChallengeProxy`` over it. More kinds may come: write a `default` where
/// you switch.
public enum ChallengeEvent: Equatable, Sendable {
    /// A challenge was answered with the credential or identity of that name. The controller has given it out; where the
    /// proxy answered with a password, the site has taken it. What the proxy sends a site unasked, as it was taken there
    /// before, is not told.
    case answered(ProtectionSpace, with: String)
    /// A challenge was not answered; the error says why, nil where it was the caller's from the beginning.
    case handedBack(ProtectionSpace, ChallengeError?)
    /// The site did not take the credential or identity of that name. A credential is not tried there again until it
    /// changes.
    case rejected(ProtectionSpace, credential: String)
    /// The identity of that name has a new certificate.
    case refreshed(identity: String)
    /// A certificate was due and could not be had.
    case notRefreshed(identity: String, ChallengeError)
}

/// Who listens to a controller's events.
final class Listeners: Sendable {
    /// How many events wait for a listener that is slow; beyond it the oldest is dropped.
    static let capacity = 256

    private struct State {
        var next: UInt64 = 0
        var continuations: [UInt64: AsyncStream<ChallengeEvent>.Continuation] = [:]
    }

    private let state = NIOLockedValueBox(State())

    /// Every event from now on.
    func stream() -> AsyncStream<ChallengeEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ChallengeEvent.self, bufferingPolicy: .bufferingNewest(Self.capacity))
        let number = state.withLockedValue { state in
            state.next &+= 1
            state.continuations[state.next] = continuation
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLockedValue { $0.continuations.removeValue(forKey: number) }
        }
        return stream
    }

    /// `event` is not made where nobody listens.
    func tell(_ event: @autoclosure () -> ChallengeEvent) {
        let listening = state.withLockedValue { Array($0.continuations.values) }
        guard !listening.isEmpty else { return }
        let event = event()
        for continuation in listening { continuation.yield(event) }
    }

    deinit {
        for continuation in state.withLockedValue({ Array($0.continuations.values) }) { continuation.finish() }
    }
}
