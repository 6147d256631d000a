// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A request to the provider. The caller sends it without following redirects, without cookies, and with the limits
/// that it says.
package struct ProviderRequest: Sendable, Equatable {
    package enum Purpose: String, Sendable, Equatable {
        /// RFC 8414 §3, OpenID Connect Discovery §4.
        case metadata
        /// RFC 7517 §5.
        case keys
        /// RFC 9126 §2.1.
        case pushedAuthorization
        /// RFC 8628 §3.1.
        case deviceAuthorization
        /// RFC 6749 §4.1.3, §6; RFC 8628 §3.4.
        case token
        /// RFC 7009 §2.1.
        case revocation

        /// For messages: `the token endpoint`.
        package var place: String {
            switch self {
            case .metadata: "the provider's metadata"
            case .keys: "the provider's keys"
            case .pushedAuthorization: "the pushed authorization request endpoint"
            case .deviceAuthorization: "the device authorization endpoint"
            case .token: "the token endpoint"
            case .revocation: "the revocation endpoint"
            }
        }
    }

    package let purpose: Purpose
    package let url: EndpointURL
    /// The body of a POST, `application/x-www-form-urlencoded`; nil for a GET.
    package let body: Secret?
    /// The value of the `Authorization` field, if there is one.
    package let authorization: Secret?
    /// The secrets in body and authorization, so that no error repeats them.
    package let secrets: [Secret]

    package init(
        _ purpose: Purpose, _ url: EndpointURL, body: Secret? = nil, authorization: Secret? = nil,
        secrets: [Secret] = []
    ) {
        self.purpose = purpose
        self.url = url
        self.body = body
        self.authorization = authorization
        self.secrets = secrets
    }

    package var method: String { body == nil ? "GET" : "POST" }

    /// The value of the `Content-Type` field.
    package var contentType: String? { body == nil ? nil : "application/x-www-form-urlencoded" }

    /// The value of the `Accept` field.
    package var accept: String { purpose == .keys ? "application/jwk-set+json, application/json" : "application/json" }

    /// The longest response body that is of use. A longer one is cut there or reported as a failure.
    package static let maximumResponseBytes = 256 * 1024
}

/// What came of a ``ProviderRequest``.
package enum ProviderOutcome: Sendable {
    case response(ProviderResponse)
    /// There is no complete response.
    case failure(ProviderFailure)

    /// Throws `unreachable` if there is no response.
    func response(from purpose: ProviderRequest.Purpose) throws(OAuthError) -> ProviderResponse {
        switch self {
        case .response(let response): return response
        case .failure(let failure): throw failure.error(at: purpose)
        }
    }
}

/// A complete HTTP response.
package struct ProviderResponse: Sendable {
    package let status: Int
    /// The value of the `Content-Type` field, if there is one.
    package let contentType: String?
    /// The seconds of the `Retry-After` field (RFC 9110 §10.2.3), if there is a valid one.
    package let retryAfter: Int64?
    /// May contain tokens. The caller wipes it afterwards.
    package let body: [UInt8]

    package init(status: Int, contentType: String?, retryAfter: Int64? = nil, body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.body = body
    }

    /// Type and subtype in lower case, without parameters.
    var mediaType: String? {
        contentType.map { String($0.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }).lowercased() }
    }

    /// `application/json` or a type with that suffix (RFC 6839 §3.1).
    var isJSON: Bool { mediaType == "application/json" || mediaType?.hasSuffix("+json") == true }

    /// For messages: `status 502, text/html`.
    var summary: String { "status \(status)" + (contentType.map { ", \(PrintableText.plain($0))" } ?? "") }
}

/// Why a request has no response.
package struct ProviderFailure: Error, Sendable, Equatable {
    /// A sentence in lower case without a full stop, printable and without secrets.
    package let detail: String
    package let hint: String?
    /// There was no response within the time limit (RFC 8628 §3.5 wants slower polling then).
    package let timedOut: Bool
    /// A repetition may succeed. False for an untrusted certificate.
    package let isTransient: Bool

    package init(_ detail: String, hint: String? = nil, timedOut: Bool = false, isTransient: Bool = true) {
        self.detail = detail
        self.hint = hint
        self.timedOut = timedOut
        self.isTransient = isTransient
    }
}
