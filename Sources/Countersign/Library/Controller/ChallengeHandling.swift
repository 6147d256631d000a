// SPDX-License-Identifier: Apache-2.0

/// The part of a ``ChallengeController`` for a program that only answers challenges. A program that takes `any
/// ChallengeHandling` can be tested without a home: `CountersignTesting` has a `FakeController`.
public protocol ChallengeHandling: Sendable {
    /// As ``ChallengeController/canHandle(_:)``.
    @discardableResult
    func canHandle(_ space: ProtectionSpace) throws(ChallengeError) -> Bool
    /// As ``ChallengeController/handle(_:)``.
    func handle(_ challenge: AuthenticationChallenge) async -> (ChallengeDisposition, Credential?)
    /// As ``ChallengeController/answerAccepted(_:)``.
    func answerAccepted(_ challenge: AuthenticationChallenge)
    /// As ``ChallengeController/fetchNewCertificates(named:pendingRetry:)``.
    func fetchNewCertificates(named name: String?, pendingRetry: PendingRetry) async throws
    /// As ``ChallengeController/isIntegratedAuthenticationEnabled``.
    var isIntegratedAuthenticationEnabled: Bool { get nonmutating set }
    /// As ``ChallengeController/events``.
    var events: AsyncStream<ChallengeEvent> { get }
}

extension ChallengeController: ChallengeHandling {}
