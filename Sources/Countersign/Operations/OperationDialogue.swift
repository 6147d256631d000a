// SPDX-License-Identifier: Apache-2.0

/// The other side of an operation while it is performed.
package struct OperationDialogue: Sendable {
    /// The process that the operation is performed for; nil for this one.
    package let process: Int32?
    /// Receives the progress of a renewal, on any thread.
    package let report: @Sendable (RenewalProgress) -> Void
    /// Whether no caller waits for the result any longer, so that a renewal or a test request ends.
    package let isAbandoned: (@Sendable () -> Bool)?
    /// The end of the page to open; nil until it is known.
    package let pageEnd: @Sendable () -> PageEnd?
    /// Chooses the anchors of a first enrolment; nil if the request has to have them. A running server does not call
    /// it.
    package let confirm: AnchorConfirmation?
    /// Receives the address and the token of a proxy.
    package let opened: @Sendable (_ address: String, _ token: String) -> Void
    /// Waits until the other side ends a proxy.
    package let waitForEnd: @Sendable () -> Void

    package init(
        process: Int32? = nil, report: @escaping @Sendable (RenewalProgress) -> Void = { _ in },
        isAbandoned: (@Sendable () -> Bool)? = nil, pageEnd: @escaping @Sendable () -> PageEnd? = { nil },
        confirm: AnchorConfirmation? = nil, opened: @escaping @Sendable (String, String) -> Void = { _, _ in },
        waitForEnd: @escaping @Sendable () -> Void = {}
    ) {
        self.process = process
        self.report = report
        self.isAbandoned = isAbandoned
        self.pageEnd = pageEnd
        self.confirm = confirm
        self.opened = opened
        self.waitForEnd = waitForEnd
    }

    /// Reports nothing.
    package static let silent = OperationDialogue()
}

/// How a page has ended before the operation that needs it.
package enum PageEnd: Equatable, Sendable, Codable {
    /// The person has closed it.
    case closed
    /// It cannot be shown, for this reason.
    case failed(String)
}
