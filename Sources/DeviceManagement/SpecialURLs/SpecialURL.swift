// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

// The sign-in page of an organisation that manages devices can send the web view to URLs that are not pages: they ask
// the program to enrol the device, to install a profile, or to go on elsewhere. This module decides on the action for
// them. It does no I/O, and the same input always gives the same result.
//
//   SpecialURL                     such a URL, parsed
//   InteractiveWebviewState        the state of the session: the headers of the last response, and the attempts to
//                                  obtain a token of the broker
//   SpecialURLRules                the permissions of the profile: hosts, additional headers and parameters
//   SpecialURLViewActionResolver   URL, state and rules → WebviewAction
//   BrowserHandoff                 the same for the response headers that open a second window
//   InteractiveWebviewHandler      the app's part, with a default for each requirement
//   InteractiveWebviewController   the steps in their order; makes and owns the second window
//
// There are two forms. The one that ships has the parameters `intuneRedirectUrl`, `continueUrl` and others, and headers
// that begin with `x-ms-aswebauth-handoff-`. The other has been published as a draft and has `cpurl`, `X-Install-Url`
// and `X-Intune-AuthToken`. Both are recognised.

/// A URL with a scheme that has a meaning of its own during a sign-in.
package struct SpecialURL: Equatable, Sendable {
    package enum Scheme: String, CaseIterable, Sendable {
        /// Requests of device management. `msauth.APP` is the scheme of an app's redirect URI and not special.
        case msauth
        /// An https page for the person's browser.
        case browser
        /// A request to a wallet (OpenID for Verifiable Presentations).
        case wallet = "openid-vc"
        /// A request to the vendor's app for device management.
        case companyPortal = "companyportal"
    }

    /// The longest URL, in bytes.
    package static let maximumBytes = 16 << 10

    /// As it was given.
    package let text: String
    package let scheme: Scheme
    /// As it was given, without port and user information; empty without a host.
    package let host: String
    /// Begins with `/`, unless it is empty.
    package let path: String
    /// Decoded, in order, without the names that occur more than once.
    private let parameters: [(name: String, value: String)]
    /// The names that occur more than once, whose value is therefore ambiguous.
    private let repeated: Set<String>

    package static func == (left: Self, right: Self) -> Bool { left.text == right.text }

    /// Nil if the scheme is not special. Throws `malformed` for a special URL that is too long, has a character that no
    /// URL has, user information, a port, or parameters that cannot be decoded.
    package init?(_ text: String) throws(DeviceManagementError) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), colon.utf16Offset(in: text) <= 16,
            let scheme = Scheme(rawValue: text[..<colon].lowercased())
        else { return nil }
        func malformed(_ reason: String) -> DeviceManagementError {
            DeviceManagementError(.malformed, "the page's \(scheme.rawValue): URL cannot be used: \(reason)")
        }
        guard text.utf8.count <= Self.maximumBytes else { throw malformed("it is too long") }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }) else {
            throw malformed("it has a character that a URL may not have")
        }
        var rest = text[text.utf8.index(after: colon)...].prefix { $0 != "#" }
        let query = rest.firstIndex(of: "?").map { rest[rest.index(after: $0)...] } ?? ""
        rest = rest.prefix { $0 != "?" }
        guard rest.hasPrefix("//") else { throw malformed("it has no host") }
        rest = rest.dropFirst(2)
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains("@") else { throw malformed("it has a user name") }
        // The address of a page for the browser may have a port; the words of the other schemes have none.
        guard scheme == .browser || !authority.contains(":") else { throw malformed("it has a port") }
        guard let pairs = FormEncoding.decode(query.utf8) else {
            throw malformed("its parameters cannot be decoded")
        }
        var names: Set<String> = []
        var repeated: Set<String> = []
        for pair in pairs where !names.insert(pair.name).inserted { repeated.insert(pair.name) }
        self.text = text
        self.scheme = scheme
        host = String(authority.prefix { $0 != ":" })
        path = String(rest[authority.endIndex...])
        parameters = pairs.filter { !repeated.contains($0.name) }
        self.repeated = repeated
    }

    /// The value of a parameter that occurs once and is not empty. Throws `malformed` if it occurs more than once.
    package func parameter(_ name: String) throws(DeviceManagementError) -> String? {
        guard !repeated.contains(name) else {
            throw DeviceManagementError(.malformed, "the page's \(subject) URL has more than one \(name)")
        }
        return parameters.first { $0.name == name && !$0.value.isEmpty }?.value
    }

    /// ``parameter(_:)``, which must be there.
    func required(_ name: String) throws(DeviceManagementError) -> String {
        guard let value = try parameter(name) else {
            throw DeviceManagementError(.malformed, "the page's \(subject) URL has no \(name)")
        }
        return value
    }

    /// All parameters but those with these names. Throws `malformed` if one occurs more than once.
    func parameters(without names: Set<String>) throws(DeviceManagementError) -> [(name: String, value: String)] {
        guard repeated.isEmpty else {
            throw DeviceManagementError(
                .malformed, "the page's \(subject) URL has more than one \(PrintableText.quote(repeated.sorted()[0]))")
        }
        return parameters.filter { !names.contains($0.name) }
    }

    /// For a message: the scheme and the host, and nothing that could be a secret.
    package var subject: String { "\(scheme.rawValue)://\(PrintableText.plain(host))" }

    /// The same URL with https as its scheme: the meaning of a `browser:` URL.
    var asWebPage: String { "https" + text[text.firstIndex(of: ":")!...] }
}
