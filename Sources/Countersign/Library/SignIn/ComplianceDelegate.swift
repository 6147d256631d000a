// SPDX-License-Identifier: Apache-2.0

/// Hears about remediations and wipes.
public protocol ComplianceDelegate: Sendable {
    /// A remediation has ended. Silent questions of a ``ChallengeController`` are reported if the status has changed.
    func remediated(_ result: ComplianceResult) async

    /// The organisation wants programs to start again, so that its policy takes effect: save unsaved state. The library
    /// itself needs no restart, and does not end the program.
    func saveState(before result: ComplianceResult) async

    /// There is no token: whether to wipe the results of the enrolment, and nothing else, at once. Called after
    /// ``remediated(_:)`` of a ``ComplianceManager`` with the statuses `notCompliant`, `networkFailure`,
    /// `serviceFailure` and `userCancelled`.
    func shouldWipe(after result: ComplianceResult) async -> Bool

    /// The enrolment is about to be wiped: save unsaved state. The wipe begins when this returns, and after a minute at
    /// the latest.
    func willWipe(_ wipe: ComplianceWipe) async

    /// The enrolment was wiped, or ``ComplianceWipe/failure`` says why the wipe is not complete.
    func wiped(_ wipe: ComplianceWipe) async
}

extension ComplianceDelegate {
    /// Does nothing.
    public func saveState(before result: ComplianceResult) async {}
    /// False: the enrolment stays, and answers nothing while the device does not comply.
    public func shouldWipe(after result: ComplianceResult) async -> Bool { false }
    /// Does nothing.
    public func willWipe(_ wipe: ComplianceWipe) async {}
    /// Does nothing.
    public func wiped(_ wipe: ComplianceWipe) async {}
}

/// The removal of all results of one enrolment, because the device does not comply.
public struct ComplianceWipe: Sendable, Hashable {
    /// The name of the sign-in.
    public let signIn: String
    /// The part of the `homeAccountId` before the dot, or the name of the sign-in if that is not known.
    public let accountID: String
    /// The number of days without a confirmation after which the organisation's profile wants it; nil if the delegate
    /// does.
    public let days: Int?
    /// Why it is not complete; nil before the wipe, and when it is complete. The remains answer nothing, and are
    /// removed later.
    public internal(set) var failure: String?

    init(signIn: String, accountID: String, days: Int?) {
        self.signIn = signIn
        self.accountID = accountID
        self.days = days
    }

    /// How long a delegate may take to save its state.
    static let savingLimit = Duration.seconds(60)

    /// Notifies the delegate, wipes, and notifies it again. `body` returns why the wipe is not complete; nil if it is.
    func perform(
        for delegate: (any ComplianceDelegate)?, within limit: Duration = savingLimit,
        _ body: @Sendable () async -> String?
    ) async {
        if let delegate { _ = await Task { await delegate.willWipe(self) }.value(within: limit) }
        var done = self
        done.failure = await body()
        await delegate?.wiped(done)
    }
}
