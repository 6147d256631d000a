// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The claims of an ID token (OpenID Connect Core §2) that have been checked against the request.
package struct IDToken: Sendable, Equatable {
    package let issuer: String
    /// The person at this issuer (`sub`): at most 255 visible ASCII characters.
    package let subject: String
    package let issuedAt: Int64
    package let expiresAt: Int64
    /// `nbf` (RFC 7519 §4.1.5).
    let notBefore: Int64?
    /// How people call the account: `preferred_username`, `email`, `upn` or `name`, otherwise the subject. Printable
    /// and shortened. Says nothing about who it is.
    package let accountName: String
    /// All claims.
    package let claims: JSONValue

    /// The values that a token has to match.
    package struct Expectation: Sendable {
        package var issuer: String
        package var clientIdentifier: String
        /// The nonce of the request; nil if none was sent, as in the device flow.
        package var nonce: String?
        /// After a refresh: the nonce that the token must have if it has one (§12.2).
        package var earlierNonce: String?
        /// The access token of the same response (§3.1.3.6).
        package var accessToken: Secret?
        /// After a refresh: the subject of the first token (§12.2).
        package var subject: String?
        /// Seconds since 1970.
        package var now: Int64
        /// How far the clocks may differ, in seconds.
        package var clockSkew: Int64
        /// The classes of authentication, one of which is required (§2, `acr`); empty for any.
        package var acrValues: [String] = []
        /// How long ago the person may have signed in, in seconds (§2, `auth_time`); nil for any time.
        package var maxAge: Int64?
        /// Whether a token that is not valid now is refused. If not, see ``IDToken/isCurrent(now:clockSkew:)``.
        package var checksTimes = true

        package init(
            issuer: String, clientIdentifier: String, nonce: String? = nil, accessToken: Secret? = nil,
            subject: String? = nil, now: Int64, clockSkew: Int64 = 120
        ) {
            self.issuer = issuer
            self.clientIdentifier = clientIdentifier
            self.nonce = nonce
            self.accessToken = accessToken
            self.subject = subject
            self.now = now
            self.clockSkew = clockSkew
        }
    }

    /// Checks the claims of a token (§3.1.3.7) whose signature the caller has verified or is about to verify. Throws
    /// `invalidIDToken`, or `accountChanged` if the subject is another one than expected.
    package init(_ token: SignedToken, _ expected: Expectation) throws(OAuthError) {
        let claims: JSONValue
        let members: Members
        do throws(JSONError) {
            claims = try JSONParser.parse(token.payload)
            members = try Members(claims)
        } catch {
            throw SignedToken.invalid("its claims cannot be used: \(error.detail)")
        }
        guard members.issuer.isExactly(expected.issuer) else {
            throw SignedToken.invalid("its issuer is \(PrintableText.longer(members.issuer))")
        }
        try members.checkAudience(expected.clientIdentifier)
        if expected.checksTimes { try members.checkTimes(now: expected.now, skew: expected.clockSkew) }
        if let nonce = expected.nonce {
            guard let received = members.nonce, Secret(utf8: received) == Secret(utf8: nonce) else {
                throw SignedToken.invalid("its nonce is not that of this sign-in")
            }
        }
        if let earlier = expected.earlierNonce, let received = members.nonce, !earlier.isExactly(received) {
            throw SignedToken.invalid("its nonce is not that of the sign-in")
        }
        if let hash = members.accessTokenHash, let accessToken = expected.accessToken {
            try Self.check(hash, of: accessToken, token.algorithm)
        }
        try members.checkAuthentication(expected)
        if let subject = expected.subject, !subject.isExactly(members.subject) {
            throw OAuthError(
                .accountChanged, .provider, "the provider has returned the tokens of another account",
                hint: "sign in again")
        }
        issuer = members.issuer
        subject = members.subject
        issuedAt = members.issuedAt
        expiresAt = members.expiresAt
        notBefore = members.notBefore
        accountName = members.accountName
        self.claims = claims
    }

    /// Whether the token is valid at that time, in seconds since 1970, if the clocks differ by at most `clockSkew`
    /// seconds.
    package func isCurrent(now: Int64, clockSkew: Int64) -> Bool {
        now < expiresAt + clockSkew && issuedAt <= now + clockSkew && notBefore ?? .min <= now + clockSkew
    }

    /// §3.1.3.6: the left half of the digest of the access token's ASCII.
    private static func check(
        _ hash: String, of accessToken: Secret, _ algorithm: SignatureAlgorithm
    ) throws(OAuthError) {
        let digest = accessToken.withBytes { algorithm.digest.hash($0) }
        guard Base64URL.encode(digest.prefix(digest.count / 2)).isExactly(hash) else {
            throw SignedToken.invalid("its at_hash is not that of the access token")
        }
    }
}

/// The claims by type, before they are checked.
private struct Members {
    let issuer: String
    let subject: String
    let audiences: [String]
    let authorizedParty: String?
    let issuedAt: Int64
    let expiresAt: Int64
    let notBefore: Int64?
    let nonce: String?
    let accessTokenHash: String?
    let accountName: String
    let authenticationClass: String?
    let authenticatedAt: Int64?

    init(_ claims: JSONValue) throws(JSONError) {
        var reader = try JSONReader(claims, "the claims", .lenient)
        issuer = try reader.string("iss")
        subject = try reader.string("sub")
        guard (1...255).contains(subject.utf8.count), subject.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw reader.invalid("sub", "is empty, too long or not ASCII")
        }
        if case .string(let audience)? = reader.valueIfPresent("aud")?.content {
            audiences = [audience]
        } else {
            audiences = try reader.strings("aud")
        }
        authorizedParty = try reader.stringIfPresent("azp")
        issuedAt = try Self.time("iat", &reader)
        expiresAt = try Self.time("exp", &reader)
        notBefore = reader.valueIfPresent("nbf") == nil ? nil : try Self.time("nbf", &reader)
        nonce = try reader.stringIfPresent("nonce")
        accessTokenHash = try reader.stringIfPresent("at_hash")
        authenticationClass = claims.text("acr")
        // Only what a request requires has to be readable.
        authenticatedAt = try? Self.time("auth_time", &reader)
        let names = ["preferred_username", "email", "upn", "name"].compactMap { name -> String? in
            if case .string(let text)? = claims[name]?.content, !text.isEmpty { text } else { nil }
        }
        accountName = PrintableText.longer(names.first ?? subject)
    }

    /// A NumericDate (RFC 7519 §2), which may have a fraction.
    private static func time(_ name: String, _ reader: inout JSONReader) throws(JSONError) -> Int64 {
        switch reader.valueIfPresent(name)?.content {
        // Far below the limits, so that the clock skew can be added.
        case .integer(let seconds)? where abs(seconds / 2) < 1 << 52: return seconds
        case .number(let text)?:
            guard let number = Double(text), abs(number) < 9e15 else { throw reader.invalid(name, "is out of range") }
            return Int64(number)
        case .none: throw reader.invalid(name, "is missing")
        case .integer: throw reader.invalid(name, "is out of range")
        case .null, .bool, .string, .secret, .array, .object: throw reader.invalid(name, "is not a number")
        }
    }

    /// §3.1.3.7 items 3 to 5. Other audiences are accepted only if `azp` says that the token was issued to this client.
    func checkAudience(_ client: String) throws(OAuthError) {
        guard audiences.containsExactly(client) else { throw SignedToken.invalid("it is for another client") }
        guard authorizedParty?.isExactly(client) ?? (audiences.count == 1) else {
            throw SignedToken.invalid("it was issued to another client")
        }
    }

    /// Items 12 and 13. A provider that ignores what was required is noticed before its token is used (RFC 9470 §5).
    func checkAuthentication(_ expected: IDToken.Expectation) throws(OAuthError) {
        if !expected.acrValues.isEmpty {
            let wanted = expected.acrValues.joined(separator: " or ")
            guard let authenticationClass, expected.acrValues.containsExactly(authenticationClass) else {
                let given = authenticationClass.map { "at the level \(PrintableText.longer($0))" } ?? "at no level"
                throw OAuthError(
                    .insufficientAuthentication, .provider,
                    "the provider says that you have signed in \(given), and \(wanted) was required",
                    hint:
                        "sign in with the method that the site requires, such as a second factor; if the provider did "
                        + "not ask for it, tell those who run it")
            }
        }
        guard let maxAge = expected.maxAge else { return }
        guard let authenticatedAt, authenticatedAt + maxAge + expected.clockSkew >= expected.now else {
            let given = authenticatedAt.map { "\(max(0, expected.now - $0)) seconds ago" } ?? "at an unknown time"
            throw OAuthError(
                .insufficientAuthentication, .provider,
                "the provider says that you have signed in \(given), and at most \(maxAge) seconds were required",
                hint: "sign in anew when the page asks for it")
        }
    }

    /// Items 9 and 10, and RFC 7519 §4.1.5.
    func checkTimes(now: Int64, skew: Int64) throws(OAuthError) {
        let clock = "compare this machine's clock with the provider's"
        func invalid(_ reason: String) -> OAuthError {
            OAuthError(.invalidIDToken, .provider, "the ID token is not accepted: \(reason)", hint: clock)
        }
        guard now < expiresAt + skew else { throw invalid("it expired \(now - expiresAt) s ago") }
        guard issuedAt <= now + skew else { throw invalid("it was issued \(issuedAt - now) s in the future") }
        if let notBefore, notBefore > now + skew { throw invalid("it is valid only in \(notBefore - now) s") }
    }
}
