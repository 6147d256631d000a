// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// The address of an EST server: `https://host[:port][/label]` (RFC 7030 §3.2.2).
package struct ESTEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// An operation of an EST server, with the last segment of its path.
    package enum Operation: String, CaseIterable, Sendable {
        /// RFC 7030 §4.1.
        case cacerts
        /// RFC 7030 §4.5.
        case csrattrs
        /// RFC 7030 §4.2.1.
        case simpleenroll
        /// RFC 7030 §4.2.2.
        case simplereenroll
    }

    package let origin: Origin
    /// Selects one of several CAs behind one server; nil for the default one.
    package let label: String?

    /// Accepts https only, without user information, query and fragment. The text may include the well-known path.
    /// Throws `configuration` for anything else.
    package init(parsing text: String) throws(EnrollmentError) {
        let url: AbsoluteURL
        do {
            url = try AbsoluteURL(parsing: text)
        } catch {
            throw EnrollmentError(.configuration, "not an EST server's address: \(error.detail)", hint: Self.shape)
        }
        guard url.origin.scheme == .https else {
            throw EnrollmentError(
                .configuration, "EST requires https, not \(url.origin)", hint: Self.shape)
        }
        guard !text.contains("#"), !text.contains("?") else {
            throw EnrollmentError(
                .configuration, "an EST server's address must not have a query or fragment", hint: Self.shape)
        }
        var segments = url.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        if segments.last == "" { segments.removeLast() }
        if segments.prefix(2) == [".well-known", "est"] { segments.removeFirst(2) }
        guard segments.count <= 1, segments.allSatisfy(Self.isLabel) else {
            throw EnrollmentError(
                .configuration, "the path \(PrintableText.quote(url.path)) is not one label of an EST server",
                hint: Self.shape)
        }
        origin = url.origin
        label = segments.first.map(String.init)
    }

    /// The address of an operation.
    package func url(for operation: Operation) -> String {
        "https://\(origin.authority)/.well-known/est/" + (label.map { $0 + "/" } ?? "") + operation.rawValue
    }

    /// The shortest form that ``init(parsing:)`` accepts.
    package var description: String { "https://\(origin.authority)" + (label.map { "/" + $0 } ?? "") }

    private static let shape = "write it as https://host[:port][/label]"

    /// Only unreserved characters (RFC 3986 §2.3), and neither a dot segment nor the name of an operation.
    private static func isLabel(_ segment: Substring) -> Bool {
        let reserved = Operation.allCases.map(\.rawValue) + [".", "..", "fullcmc", "serverkeygen"]
        return segment.utf8.allSatisfy(PercentEncoding.isUnreserved) && (1...128).contains(segment.utf8.count)
            && !reserved.contains(String(segment))
    }
}
