// SPDX-License-Identifier: Apache-2.0

/// `approve=` of a line: the requests that wait until a person has agreed.
package enum ApprovalRule: String, Equatable, Sendable, CaseIterable {
    /// All of them.
    case ask
    /// Those whose method is not safe (RFC 9110 §9.2.1).
    case write

    /// Whether a request waits. `isSafe`: its method is.
    package func applies(isSafe: Bool) -> Bool { self == .ask || !isSafe }
}
