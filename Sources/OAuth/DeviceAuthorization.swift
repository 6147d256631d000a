// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A device authorization response (RFC 8628 §3.2).
package struct DeviceAuthorization: Sendable, Equatable {
    /// The code that the person enters. Printable, at most 64 characters.
    package let userCode: String
    /// The page on which the person enters it.
    package let verificationURL: EndpointURL
    /// The same with the code in it, for a QR code.
    package let completeVerificationURL: EndpointURL?
    /// Seconds since 1970.
    package let expiresAt: Int64
    let deviceCode: Secret
    /// Seconds between two polls.
    let interval: Int64

    /// RFC 8628 §3.1. Throws `unsupportedProvider`.
    static func request(_ wanted: SignInRequest, at metadata: ProviderMetadata) throws(OAuthError) -> ProviderRequest {
        guard let endpoint = metadata.deviceAuthorizationEndpoint else {
            throw OAuthError(
                .unsupportedProvider, .provider,
                "the provider has no device authorization endpoint, so that signing in needs a browser here",
                hint: "use the system's browser")
        }
        var parameters = FormParameters()
        parameters.append("scope", ifPresent: wanted.scope)
        for resource in wanted.resources { parameters.append("resource", resource) }
        parameters.append("login_hint", ifPresent: wanted.loginHint)
        parameters.append("claims", ifPresent: wanted.claims?.serialized)
        for parameter in wanted.authorizationParameters { parameters.append(parameter.name, parameter.value) }
        return wanted.client.request(.deviceAuthorization, endpoint, parameters)
    }

    /// An optional member that cannot be read counts as absent. `secrets` are those of the request.
    init(
        _ response: ProviderResponse, _ transport: EndpointURL.Transport, now: Int64, hiding secrets: [Secret] = []
    ) throws(OAuthError) {
        let what = "the response of the device authorization endpoint"
        guard response.status == 200, ProviderError(response) == nil else {
            throw ProviderError.error(response, at: .deviceAuthorization, hiding: secrets)
        }
        guard response.isJSON else { throw .malformed(what, "it is not JSON (\(response.summary))") }
        let members = try OAuthError.reading(what) { () throws(JSONError) in try Members(response.body) }
        guard (1...4096).contains(members.deviceCode.count) else {
            throw .malformed(what, "\"device_code\" is empty or too long")
        }
        guard (1...64).contains(members.userCode.utf8.count),
            members.userCode.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw .malformed(what, "\"user_code\" is empty, too long or not printable") }
        guard members.lifetime > 0 else { throw .malformed(what, "\"expires_in\" is not positive") }
        userCode = members.userCode
        verificationURL = try EndpointURL(provided: members.address, "verification_uri", transport)
        completeVerificationURL = members.completeAddress.flatMap {
            try? EndpointURL(provided: $0, "verification_uri_complete", transport)
        }
        deviceCode = members.deviceCode
        expiresAt = now + min(members.lifetime, Self.longestLifetime)
        // RFC 8628 §3.2: 5 if the provider does not say.
        interval = min(max(members.interval ?? 5, 1), Self.longestInterval)
    }

    /// One day, in seconds.
    static let longestLifetime: Int64 = 86_400
    /// Seconds.
    static let longestInterval: Int64 = 600

    private struct Members {
        let deviceCode: Secret
        let userCode: String
        let address: String
        let completeAddress: String?
        let lifetime: Int64
        let interval: Int64?

        init(_ body: [UInt8]) throws(JSONError) {
            let value = try JSONParser.parse(body, secrets: TokenResponse.secretMembers)
            var reader = try JSONReader(value, "the document", .lenient)
            deviceCode = try reader.secret("device_code")
            userCode = try reader.string("user_code")
            // `verification_url` is the name in an early draft, which Google has kept.
            let early = try reader.stringIfPresent("verification_url")
            if let early, try reader.stringIfPresent("verification_uri") == nil {
                address = early
            } else {
                address = try reader.string("verification_uri")
            }
            completeAddress = value.text("verification_uri_complete")
            guard let lifetime = try reader.secondsIfPresent("expires_in") else {
                throw reader.invalid("expires_in", "is missing")
            }
            self.lifetime = lifetime
            interval = try? reader.secondsIfPresent("interval")
        }
    }
}
