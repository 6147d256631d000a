// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignJSON

/// A successful token response (RFC 6749 §5.1; OpenID Connect Core §3.1.3.3).
struct TokenResponse: Sendable, Equatable {
    let accessToken: Secret
    /// The key to which the access token is bound; nil for a bearer token.
    let proofKey: ES256Key?
    /// Seconds. Nil if the provider does not say.
    let lifetime: Int64?
    let refreshToken: Secret?
    /// Nil if it is the requested scope.
    let scope: String?
    let idToken: Secret?
    let clientInfo: ClientInfo?

    /// The members whose values must not get into ordinary memory when a response is read. The parts of an ID token do
    /// when it is checked: it names the person and gives no access.
    static let secretMembers: Set<String> = ["access_token", "refresh_token", "id_token", "device_code"]

    /// The longest token, in bytes.
    static let maximumTokenBytes = 64 * 1024

    /// A longer lifetime is taken for this one. Ten years, in seconds.
    static let longestLifetime: Int64 = 10 * 366 * 86_400

    /// The access token with its key, if it is bound to one.
    var storedToken: Secret { proofKey.map { BoundToken(accessToken, $0).encoded } ?? accessToken }

    /// Throws the provider's error, `malformedResponse`, or `unsupportedProvider` for a token of another type than was
    /// asked for: a bearer token, or, with `proofKey`, one that is bound to this key. A bearer token that the provider
    /// issues in its place is of use to a thief, and refused (RFC 9449 §5). An unreadable optional member counts as
    /// absent. `secrets` are those of the request.
    init(
        _ response: ProviderResponse, hiding secrets: [Secret] = [], boundTo proofKey: ES256Key? = nil
    ) throws(OAuthError) {
        let what = "the response of the token endpoint"
        // Some providers report errors with status 200.
        guard response.status == 200, ProviderError(response) == nil else {
            throw ProviderError.error(response, at: .token, hiding: secrets)
        }
        guard response.isJSON else { throw .malformed(what, "it is not JSON (\(response.summary))") }
        let members = try OAuthError.reading(what) { () throws(JSONError) in try Members(response.body) }
        guard members.type.utf8.elementsEqual(members.type.utf8.filter { $0 < 0x80 }),
            members.type.lowercased() == (proofKey == nil ? "bearer" : "dpop")
        else {
            let type = ProviderText.code(members.type, hiding: secrets + response.secrets)
            guard proofKey != nil else {
                throw OAuthError(
                    .unsupportedProvider, .provider, "the token is of the type \"\(type)\", which cannot be used")
            }
            throw OAuthError(
                .unsupportedProvider, .provider,
                "the token is of the type \"\(type)\", and not bound to a key as \"dpop\" in the profile demands",
                hint: "ask whether the provider issues DPoP tokens to this client, or for a profile without \"dpop\"")
        }
        self.proofKey = proofKey
        try Self.check(members.accessToken, what, "access_token")
        if let token = members.refreshToken { try Self.check(token, what, "refresh_token") }
        accessToken = members.accessToken
        refreshToken = members.refreshToken
        idToken = members.idToken
        lifetime = members.lifetime.flatMap { $0 < 0 ? nil : min($0, Self.longestLifetime) }
        scope = members.scope
        clientInfo = members.clientInfo.flatMap { ClientInfo($0) }
    }

    /// The tokens of a successful response, whatever their type is: until they are revoked, a thief can use even those
    /// that ``init(_:hiding:boundTo:)`` refuses. Nil without any.
    init?(ofAnyType response: ProviderResponse) {
        guard response.status == 200, response.isJSON, ProviderError(response) == nil,
            let members = try? Members(response.body), Self.isValid(members.accessToken)
        else { return nil }
        accessToken = members.accessToken
        refreshToken = members.refreshToken.flatMap { Self.isValid($0) ? $0 : nil }
        (proofKey, lifetime, scope, idToken, clientInfo) = (nil, nil, nil, nil, nil)
    }

    /// The scope with spaces between its values. GitHub and Slack write commas, which are characters of a value
    /// elsewhere (RFC 6749 §3.3): they are separators unless `requested` has one or the scope has spaces.
    func scope(for requested: String?) -> String? {
        guard let scope, scope.utf8.contains(UInt8(ascii: ",")), !scope.utf8.contains(UInt8(ascii: " ")),
            requested?.utf8.contains(UInt8(ascii: ",")) != true
        else { return scope }
        return scope.split(separator: ",").joined(separator: " ")
    }

    /// The refresh token of a successful response, even if the rest of the response is faulty: the provider may have
    /// revoked the previous one (RFC 9700 §4.14.2). Nil without one that can be sent.
    static func refreshToken(in response: ProviderResponse) -> Secret? {
        guard response.status == 200, response.isJSON, ProviderError(response) == nil,
            let value = try? JSONParser.parse(response.body, secrets: secretMembers),
            case .secret(let token)? = value["refresh_token"]?.content, isValid(token)
        else { return nil }
        return token
    }

    /// RFC 6749 appendix A.12 and A.17: visible ASCII characters and spaces. A token with spaces is refused.
    private static func isValid(_ token: Secret) -> Bool {
        (1...maximumTokenBytes).contains(token.count)
            && token.withBytes { $0.allSatisfy { (0x21...0x7E).contains($0) } }
    }

    static func check(_ token: Secret, _ what: String, _ name: String) throws(OAuthError) {
        guard isValid(token) else {
            throw .malformed(what, "\"\(name)\" is empty, too long or has a forbidden character")
        }
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
            type = try reader.stringIfPresent("token_type") ?? "Bearer"
            accessToken = try reader.secret("access_token")
            refreshToken = try reader.secretIfPresent("refresh_token")
            // Its text is checked when it is parsed, if it is wanted.
            if case .secret(let token)? = value["id_token"]?.content, token.count > 0 {
                idToken = token
            } else {
                idToken = nil
            }
            lifetime = try? reader.secondsIfPresent("expires_in")
            scope = value.text("scope")
            clientInfo = value.text("client_info")
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
