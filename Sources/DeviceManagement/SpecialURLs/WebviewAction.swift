// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth

/// The web view's immediate action for a special URL.
package enum WebviewAction: Equatable, Sendable {
    case noop
    /// Load this page in the view.
    case loadRequest(WebviewRequest)
    /// Open a session of its own, in another window.
    case openAuthenticationSession(AuthenticationSessionRequest)
    /// Show the URL in the person's browser. Unless it `keepsView`, the sign-in ends: the person goes on there.
    case openExternalBrowser(String, keepsView: Bool)
    /// The view has done its part. The URL is an authorization response if it is a redirect URI; otherwise, repeat the
    /// authorization request.
    case complete(String)
    case fail(DeviceManagementError)
    /// Close the view: the sign-in goes on elsewhere.
    case dismiss
}

/// A page for the web view.
package struct WebviewRequest: Equatable, Sendable {
    package let url: EndpointURL
    /// For the first request only, and not for a redirect to another origin.
    package let headers: [AdditionalHeader]

    package init(_ url: EndpointURL, headers: [AdditionalHeader] = []) {
        self.url = url
        self.headers = headers
    }
}

/// A header field of a request, with its name in the given spelling. The value can be a secret, and is redacted when
/// printed.
package struct AdditionalHeader: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    package var description: String { "\(name): (secret)" }
    package var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}

/// A session in a second window.
package struct AuthenticationSessionRequest: Equatable, Sendable {
    package enum Purpose: String, Equatable, Sendable {
        /// The pages install a configuration profile. The session is always ephemeral.
        case installProfile
        case unknown
    }

    package let url: EndpointURL
    /// For the first request to the URL's origin only.
    package let headers: [AdditionalHeader]
    package let purpose: Purpose
    /// The scheme of the URL that ends the session.
    package let callbackScheme: String
    /// Whether the session has no cookies and leaves none.
    package let isEphemeral: Bool

    package init(
        _ url: EndpointURL, headers: [AdditionalHeader] = [], purpose: Purpose = .unknown,
        callbackScheme: String = SpecialURL.Scheme.msauth.rawValue, isEphemeral: Bool = true
    ) {
        self.url = url
        self.headers = headers
        self.purpose = purpose
        self.callbackScheme = callbackScheme
        self.isEphemeral = isEphemeral || purpose == .installProfile
    }
}
