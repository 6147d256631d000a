// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// An access token of a sign-in for one https site alone, because the site has required more of it than others do: a
/// stronger or more recent sign-in, or other claims. The refresh token of the sign-in renews it, too.
package struct SiteTokenRecord: Equatable, Sendable {
    /// As in an origin: canonical.
    package let host: String
    package let port: UInt16
    /// What the site has required.
    package let stepUp: StepUp
    /// The resource that the token is for (RFC 8707); empty if it is for those of the profile.
    package let resource: String
    package let access: Secret
    /// When the access token expires, in seconds since 1970; 0 if the provider does not say.
    package let expires: Int64
    /// When it was obtained, in seconds since 1970.
    package let obtained: Int64
    /// Of the vault, when it was stored.
    package internal(set) var generation: UInt64 = 0

    package init(
        host: String, port: UInt16, stepUp: StepUp, resource: String = "", access: Secret,
        expires: Int64, obtained: Int64
    ) {
        self.host = host
        self.port = port
        self.stepUp = stepUp
        self.resource = resource
        self.access = access
        self.expires = expires
        self.obtained = obtained
    }

    /// The credential that is sent, for a sign-in of that name.
    package func token(named name: String) -> TokenCredential {
        TokenCredential(name: name, token: access, generation: generation)
    }
}

extension VaultContents {
    /// Stores an access token for one site alone, in place of the one that the site had; the oldest makes room. Throws
    /// `invalidRecord` for a value outside ``VaultLimits``, and if there is no sign-in of that name.
    package mutating func setSiteToken(_ token: SiteTokenRecord, of name: String) throws(VaultError) {
        guard var record = signIns[name] else {
            throw VaultError(.invalidRecord, "there is no sign-in \(name.debugDescription)")
        }
        try VaultLimits.check(token.access, "token", upTo: VaultLimits.passwordBytes)
        guard TokenCredential.isStorable(token.access) else {
            throw VaultError(.invalidRecord, "the token has a character that Bearer cannot send (RFC 6750 §2.1)")
        }
        record.siteTokens.removeAll { $0.host == token.host && $0.port == token.port }
        if record.siteTokens.count >= VaultLimits.siteTokens { record.siteTokens.removeFirst() }
        var token = token
        token.generation = generation &+ 1
        record.siteTokens.append(token)
        try updateSignIn(record)
    }

    /// Removes the access token for one site, if it is still this one.
    package mutating func removeSiteToken(_ token: SiteTokenRecord, of name: String) throws(VaultError) {
        guard var record = signIns[name], record.siteTokens.contains(token) else { return }
        record.siteTokens.removeAll { $0 == token }
        try updateSignIn(record)
    }
}

extension VaultLimits {
    /// For one sign-in.
    package static let siteTokens = 16
    /// The scopes, or the `acr_values`, that one site requires. A challenge has no more: it names at most 512 bytes.
    static let stepUpLines = 512

    static func siteTokenFault(of record: SignInRecord) -> String? {
        if record.siteTokens.count > siteTokens { return "more than \(siteTokens) tokens for one site" }
        let areValid = record.siteTokens.allSatisfy { token in
            isSignInLine(token.host) && isSignInLine(token.resource) && token.expires >= 0 && token.obtained >= 0
                && (token.stepUp.scopes + token.stepUp.acrValues).allSatisfy(isSignInLine)
                && [token.stepUp.scopes, token.stepUp.acrValues].allSatisfy { $0.count <= stepUpLines }
                && token.stepUp.claims.map { (1...StepUp.claimsBytes).contains($0.utf8.count) } ?? true
                && token.stepUp.maxAge ?? 0 >= 0
        }
        return areValid ? nil : "a token for one site with a value that is not valid"
    }
}

extension RecordWriter {
    mutating func append(_ tokens: [SiteTokenRecord]) {
        append(UInt32(tokens.count))
        for token in tokens {
            field(token.host)
            append(UInt32(token.port))
            append(lines: token.stepUp.scopes)
            append(lines: token.stepUp.acrValues)
            field(token.stepUp.claims ?? "")
            append(UInt8(token.stepUp.maxAge == nil ? 0 : 1))
            if let maxAge = token.stepUp.maxAge { append(UInt64(clamping: maxAge)) }
            field(token.resource)
            field(token.access)
            append(UInt64(clamping: token.expires))
            append(UInt64(clamping: token.obtained))
            append(token.generation)
        }
    }
}

extension RecordReader {
    mutating func siteTokens() throws(VaultError) -> [SiteTokenRecord] {
        let count = try number(UInt32.self)
        guard (1...VaultLimits.siteTokens).contains(Int(count)) else {
            throw Self.malformed("a sign-in with \(count) tokens for one site")
        }
        var tokens: [SiteTokenRecord] = []
        for _ in 0..<count {
            let host = try text()
            guard let port = UInt16(exactly: try number(UInt32.self)) else {
                throw Self.malformed("a token for one site with a port out of range")
            }
            var stepUp = StepUp(
                scopes: try lines(upTo: VaultLimits.stepUpLines), acrValues: try lines(upTo: VaultLimits.stepUpLines))
            let claims = try text()
            stepUp.claims = claims.isEmpty ? nil : claims
            stepUp.maxAge = try flag() ? try time() : nil
            let resource = try text()
            let access = try secret(upTo: VaultLimits.passwordBytes)
            var token = SiteTokenRecord(
                host: host, port: port, stepUp: stepUp, resource: resource, access: access, expires: try time(),
                obtained: try time())
            token.generation = try number(UInt64.self)
            tokens.append(token)
        }
        return tokens
    }
}
