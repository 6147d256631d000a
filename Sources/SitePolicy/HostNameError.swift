// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a text is not a host, an authority or a URL that can be trusted to mean one thing. Equality looks at the code
/// only.
package struct HostNameError: CodedError {
    package enum Code: Equatable, Sendable {
        /// No host at all.
        case empty
        /// More than 253 bytes in its ASCII form, or an input too long to have such a form (RFC 1035 §2.3.4).
        case tooLong
        /// `user@` before the host (RFC 3986 §3.2.1).
        case userInfo
        /// White space, a control, `%`, a backslash, or anything else that is neither letter, digit, hyphen nor dot.
        case forbiddenCharacter
        /// Nothing between two dots.
        case emptyLabel
        /// More than 63 bytes between two dots.
        case labelTooLong
        /// A hyphen at an end of a label, or two in third and fourth place without being `xn--`.
        case misplacedHyphen
        /// `_`, which a listed site may not have.
        case underscore
        /// Not an international label that IDNA 2008 permits (RFC 5891 §4.2).
        case international
        /// A number where a dotted quad, or nothing numeric, is expected; or an IPv6 text that does not parse.
        case address
        /// An IPv6 zone identifier, which means something on one machine only (RFC 6874).
        case zone
        /// Not a port of 1 to 65535 in plain decimal.
        case port
        /// Neither `http` nor `https`, or not a scheme.
        case scheme
        /// A path, query or fragment where only an authority may stand.
        case path
        /// `*` anywhere but as a whole first label, or before what nobody may list as a whole.
        case wildcard
    }

    package let code: Code
    /// A short sentence for people, with the input quoted and made printable ASCII.
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}

/// Input as an error may repeat it: in quotes, cut after 80 characters, everything but printable ASCII escaped.
func quoted(_ input: some StringProtocol) -> String {
    var text = ""
    for (index, scalar) in input.unicodeScalars.enumerated() {
        guard index < 80 else { return "\"\(text)...\"" }
        switch scalar {
        case "\"", "\\": text += "\\\(scalar)"
        case " "..."~": text.unicodeScalars.append(scalar)
        default: text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
        }
    }
    return "\"\(text)\""
}
