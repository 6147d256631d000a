// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A successful token response (RFC 6749 §5.1; OpenID Connect Core §3.1.3.3).
struct TokenResponse: Sendable, Equatable {
    let accessToken: Secret
    /// Seconds. Nil if the provider does not say.
    let lifetime: Int64?
    let refreshToken: Secret?
    /// Nil if it is the scope that was asked for.
    let scope: String?
    let idToken: Secret?
    let clientInfo: ClientInfo?

    /// The members whose values must not get into ordinary memory.
    static let secretMembers: Set<String> = ["access_token", "refresh_token", "id_token", "device_code"]

    /// The longest token, in bytes.
    static let maximumTokenBytes = 64 * 1024

    /// A longer lifetime is taken for this one. Ten years, in seconds.
    static let longestLifetime: Int64 = 10 * 366 * 86_400

    /// Throws the provider's error, `malformedResponse`, or `unsupportedProvider` for a token that is not a bearer
    /// token.
    init(_ response: ProviderResponse) throws(OAuthError) {
        let what = "the response of the token endpoint"
        // Some providers report errors with status 200.
        guard response.status == 200, ProviderError(response) == nil else {
            throw ProviderError.error(response, at: .token)
        }
        guard response.isJSON else { throw .malformed(what, "it is not JSON (\(response.summary))") }
        let members = try OAuthError.reading(what) { () throws(JSONError) in try Members(response.body) }
        guard members.type.lowercased() == "bearer" else {
            throw OAuthError(
                .unsupportedProvider, .provider,
                "the token is of the type \(PrintableText.quote(members.type)), which cannot be used")
        }
        try Self.check(members.accessToken, what, "access_token")
        if let token = members.refreshToken { try Self.check(token, what, "refresh_token") }
        if let token = members.idToken { try Self.check(token, what, "id_token") }
        if let lifetime = members.lifetime, lifetime < 0 { throw .malformed(what, "\"expires_in\" is negative") }
        accessToken = members.accessToken
        refreshToken = members.refreshToken
        idToken = members.idToken
        lifetime = members.lifetime.map { min($0, Self.longestLifetime) }
        scope = members.scope
        clientInfo = members.clientInfo.flatMap { ClientInfo($0) }
    }

    /// RFC 6749 appendix A.12 and A.17: visible ASCII characters and spaces; spaces are of no use.
    private static func check(_ token: Secret, _ what: String, _ name: String) throws(OAuthError) {
        let isValid =
            (1...maximumTokenBytes).contains(token.count)
            && token.withBytes { $0.allSatisfy { (0x21...0x7E).contains($0) } }
        guard isValid else { throw .malformed(what, "\"\(name)\" is empty, too long or has a forbidden character") }
    }

    private struct Members {
        let type: String
        let accessToken: Secret
        let refreshToken: Secret?
        let idToken: Secret?
        let lifetime: Int64?
        let scope: String?
        let clientInfo: String?

        init(_ body: [UInt8]) throws(JSONError) {
            let value = try JSONParser.parse(body, secrets: TokenResponse.secretMembers)
            var reader = try JSONReader(value, "the document", .lenient)
            type = try reader.string("token_type")
            accessToken = try reader.secret("access_token")
            refreshToken = try reader.secretIfPresent("refresh_token")
            idToken = try reader.secretIfPresent("id_token")
            lifetime = try reader.secondsIfPresent("expires_in")
            scope = try reader.stringIfPresent("scope")
            clientInfo = try reader.stringIfPresent("client_info")
        }
    }
}

extension JSONReader {
    /// A number of seconds. Older providers write it as a string, and some with a fraction.
    mutating func secondsIfPresent(_ name: String) throws(JSONError) -> Int64? {
        guard let value = valueIfPresent(name) else { return nil }
        switch value.content {
        case .integer(let seconds): return seconds
        case .number(let text):
            guard let number = Double(text), abs(number) < 9e15 else { throw invalid(name, "is out of range") }
            return Int64(number)
        case .string(let text):
            guard let seconds = Int64(text) else { throw invalid(name, "is not a number") }
            return seconds
        case .null, .bool, .secret, .array, .object: throw invalid(name, "is not a number")
        }
    }
}
