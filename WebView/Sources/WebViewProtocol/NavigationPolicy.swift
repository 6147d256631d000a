// SPDX-License-Identifier: Apache-2.0

/// Decides about every navigation of the web view, before anything is sent.
///
/// WebKit does not say whether a navigation is of the main frame or of a frame in the page. `contentSecurityPolicy`
/// therefore restricts the frames before this policy decides. A frame can reach the redirect URI only if that is on an
/// allowed origin, so the caller must check `state` in any case.
package struct NavigationPolicy: Equatable, Sendable {
    package enum Decision: Equatable, Sendable {
        case allow
        /// The redirect URI: cancel, and report the URL.
        case redirect
        /// A URL with one of ``specialSchemes``: cancel, and report the URL.
        case specialURL
        /// A page asks for this device's certificate: cancel, and report the URL.
        case deviceChallenge
        /// Cancel, and report the URL without its secrets.
        case refuse(Refusal)
    }

    package let redirectURIs: [RedirectURI]
    package let allowedOrigins: [Origin]
    package let permitsSpecialURLs: Bool

    package init(redirectURIs: [RedirectURI], allowedOrigins: [Origin], permitsSpecialURLs: Bool = false) {
        self.redirectURIs = redirectURIs
        self.allowedOrigins = allowedOrigins
        self.permitsSpecialURLs = permitsSpecialURLs
    }

    /// - Parameter opensWindow: Whether the page asks for a new window, with `window.open` or a link's `target`.
    package func decide(_ text: String, opensWindow: Bool = false) -> Decision {
        guard let url = PageURL(text) else { return .refuse(.malformed) }
        if redirectURIs.contains(where: { $0.matches(url) }) { return .redirect }
        if Self.specialSchemes.contains(url.scheme) {
            return permitsSpecialURLs ? .specialURL : .refuse(.specialURL)
        }
        if opensWindow { return .refuse(.newWindow) }
        if Self.emptyDocuments.contains(text) { return .allow }
        if Self.isDeviceChallenge(url) { return .deviceChallenge }
        guard let origin = Origin(url) else { return .refuse(.scheme) }
        guard !url.hasUserInfo else { return .refuse(.userName) }
        if allowedOrigins.contains(origin) { return .allow }
        return .refuse(origin.scheme == "http" ? .insecure : .origin)
    }

    /// A Content-Security-Policy (CSP3 §6.4.3) for every document: frames load from the allowed origins only. There are
    /// no `object` and `embed` elements, whose navigations are like those of frames.
    package var contentSecurityPolicy: String {
        "frame-src " + allowedOrigins.map(\.description).joined(separator: " ") + "; object-src 'none'"
    }

    /// Schemes with a meaning of their own in device enrolment.
    package static let specialSchemes: Set<String> = ["msauth", "browser", "openid-vc", "companyportal"]

    /// `urn:http-auth:PKeyAuth?…` (MS-PKAP §3.2.5.1.2).
    private static func isDeviceChallenge(_ url: PageURL) -> Bool {
        url.scheme == "urn" && url.path.lowercased() == "http-auth:pkeyauth"
    }

    private static let emptyDocuments: Set<String> = ["about:blank", "about:srcdoc"]
}

/// Why a navigation was cancelled.
package enum Refusal: String, Codable, Sendable, CaseIterable {
    /// An https origin that is not allowed.
    case origin
    /// Plain http.
    case insecure
    /// A scheme that is neither http nor https, and not of a redirect URI.
    case scheme
    /// A URL with a scheme of device enrolment, without permission.
    case specialURL
    /// A new window.
    case newWindow
    /// A URL with a user name.
    case userName
    /// A response to be saved as a file.
    case download
    case malformed
}
