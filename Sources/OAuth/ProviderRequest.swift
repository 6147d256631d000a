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
        /// RFC 7591 §3.1.
        case registration
        /// draft-ietf-oauth-client-id-metadata-document §4.
        case clientDocument
        /// Of a GitHub App's token, which is no endpoint of OAuth.
        case installation

        /// For messages: `the token endpoint`.
        package var place: String {
            switch self {
            case .metadata: "the provider's metadata"
            case .keys: "the provider's keys"
            case .pushedAuthorization: "the pushed authorization request endpoint"
            case .deviceAuthorization: "the device authorization endpoint"
            case .token: "the token endpoint"
            case .revocation: "the revocation endpoint"
            case .registration: "the client registration endpoint"
            case .clientDocument: "the client's metadata document"
            case .installation: "the endpoint for tokens of the GitHub App"
            }
        }
    }

    package let purpose: Purpose
    package let url: EndpointURL
    /// The body of a POST, in ``contentType``; nil for a GET.
    package let body: Secret?
    /// The value of the `Authorization` field, if there is one.
    package let authorization: Secret?
    /// The secrets in body and authorization, so that no error repeats them.
    package let secrets: [Secret]
    /// Added to the body when the request is sent; see ``completed(at:nonce:random:)``.
    let assertion: ClientAssertion?
    /// The key of the tokens that the request asks for; nil for bearer tokens.
    package let proofKey: ES256Key?
    /// The value of the field `DPoP` (RFC 9449 §5), in a request that is completed.
    package internal(set) var proof: String?

    package init(
        _ purpose: Purpose, _ url: EndpointURL, body: Secret? = nil, authorization: Secret? = nil,
        secrets: [Secret] = [], assertion: ClientAssertion? = nil, proofKey: ES256Key? = nil
    ) {
        self.proofKey = proofKey
        self.assertion = assertion
        self.purpose = purpose
        self.url = url
        self.body = body
        self.authorization = authorization
        self.secrets = secrets
    }

    /// Whether ``completed(at:nonce:random:)`` may block while a token signs.
    package var mayBlock: Bool { assertion != nil }

    package var method: String { body == nil ? "GET" : "POST" }

    /// The value of the `Content-Type` field.
    package var contentType: String? {
        if purpose == .registration || purpose == .installation { return "application/json" }
        return body == nil ? nil : "application/x-www-form-urlencoded"
    }

    /// The value of the `Accept` field.
    package var accept: String {
        switch purpose {
        case .keys: "application/jwk-set+json, application/json"
        case .installation: "application/vnd.github+json"
        case .metadata, .pushedAuthorization, .deviceAuthorization, .token, .revocation, .registration,
            .clientDocument:
            "application/json"
        }
    }

    /// Other fields.
    package var fields: [(name: String, value: String)] {
        purpose == .installation ? [("X-GitHub-Api-Version", "2022-11-28")] : []
    }

    /// The longest response body that is of use. A longer one is cut there or reported as a failure.
    package static let maximumResponseBytes = 256 * 1024
}
