// SPDX-License-Identifier: Apache-2.0

public import Countersign
import Synchronization

/// Answers challenges as a test says, without a home.
public final class FakeController: ChallengeHandling {
    private struct State {
        var isEnabled = true
        var challenges: [AuthenticationChallenge] = []
        var accepted: [AuthenticationChallenge] = []
        var refreshed: [String?] = []
        var streams: [AsyncStream<ChallengeEvent>.Continuation] = []
    }

    private let answer: @Sendable (ProtectionSpace) throws(ChallengeError) -> Credential
    private let state = Mutex(State())

    /// Creates a controller. `answer` returns the credential for a site, or throws the error of the check that fails.
    public init(_ answer: @escaping @Sendable (ProtectionSpace) throws(ChallengeError) -> Credential) {
        self.answer = answer
    }

    /// The challenges that ``handle(_:)`` has received, in order.
    public var challenges: [AuthenticationChallenge] { state.withLock { $0.challenges } }
    /// The challenges that ``answerAccepted(_:)`` has received, in order.
    public var accepted: [AuthenticationChallenge] { state.withLock { $0.accepted } }
    /// The identities that were to be renewed, in order; nil for all.
    public var refreshedIdentities: [String?] { state.withLock { $0.refreshed } }

    /// Sends an event to all streams.
    public func send(_ event: ChallengeEvent) {
        for stream in state.withLock({ $0.streams }) { stream.yield(event) }
    }

    /// Throws the closure's error. False while integrated authentication is switched off.
    @discardableResult
    public func canHandle(_ space: ProtectionSpace) throws(ChallengeError) -> Bool {
        guard isIntegratedAuthenticationEnabled else { return false }
        _ = try answer(space)
        return true
    }

    /// Answers with the closure's credential. Hands the challenge back if the closure throws, after a failure, and
    /// while integrated authentication is switched off.
    public func handle(_ challenge: AuthenticationChallenge) async -> (ChallengeDisposition, Credential?) {
        state.withLock { $0.challenges.append(challenge) }
        guard isIntegratedAuthenticationEnabled, challenge.previousFailureCount == 0,
            let credential = try? answer(challenge.protectionSpace)
        else { return (.performDefaultHandling, nil) }
        return (.useCredential, credential)
    }

    /// Records the challenge.
    public func answerAccepted(_ challenge: AuthenticationChallenge) {
        state.withLock { $0.accepted.append(challenge) }
    }

    /// Records the name.
    public func fetchNewCertificates(named name: String?, pendingRetry: PendingRetry) async throws {
        state.withLock { $0.refreshed.append(name) }
    }

    /// The switch.
    public var isIntegratedAuthenticationEnabled: Bool {
        get { state.withLock { $0.isEnabled } }
        set { state.withLock { $0.isEnabled = newValue } }
    }

    /// A new stream of the events that ``send(_:)`` sends from now on.
    public var events: AsyncStream<ChallengeEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: ChallengeEvent.self)
        state.withLock { $0.streams.append(continuation) }
        return stream
    }
}
