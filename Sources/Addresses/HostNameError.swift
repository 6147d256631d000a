// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a text is not a valid host, authority or URL, or could be read in more than one way.
package struct HostNameError: CodedError {
    package enum Code: Equatable, Sendable {
        /// There is no host.
        case empty
        /// More than 253 bytes in its ASCII form, or an input too long to have such a form (RFC 1035 §2.3.4).
        case tooLong
        /// `user@` before the host (RFC 3986 §3.2.1).
        case userInfo
        /// White space, a control character, `%`, a backslash, or any other character but letters, digits, hyphens,
        /// underscores and dots.
        case forbiddenCharacter
        /// Nothing between two dots.
        case emptyLabel
        /// More than 63 bytes between two dots.
        case labelTooLong
        /// A hyphen at the start or end of a label, or hyphens as third and fourth character of a label without `xn--`.
        case misplacedHyphen
        /// An international label that IDNA 2008 does not permit (RFC 5891 §4.2).
        case international
        /// A last label that is a number without the name being a dotted quad, or a malformed IPv6 address.
        case address
        /// An IPv6 zone identifier, which is meaningful on one machine only (RFC 6874).
        case zone
        /// A port that is not a decimal number from 1 to 65535.
        case port
        /// A scheme other than `http` and `https`.
        case scheme
        /// A path, query or fragment after an authority.
        case path
        /// `*` that is not the whole first label, or that stands before an address or a public suffix.
        case wildcard
    }

    package let code: Code
    /// Quotes the input in printable ASCII.
    package let detail: String
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }
}
