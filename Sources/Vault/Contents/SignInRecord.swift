// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A person who has signed in at an OAuth 2.0 provider, with the data for renewing the access token. The access token
/// itself is the ``TokenCredential`` of the same name.
package struct SignInRecord: Equatable, Sendable {
    /// Also the name of the access token.
    package let name: String
    /// The profile as the person received it, a JSON document.
    package var profile: String
    /// The file or URL of the profile.
    package var source: String
    /// The provider's issuer identifier.
    package var issuer: String
    /// The person's identifier at the provider, `sub`; empty if there was no ID token.
    package var subject: String
    /// The provider's name for the person, for display; empty if it gives none.
    package var account: String
    /// The scope that was granted, as the provider writes it.
    package var scope: String
    /// The lines that were added to the list of sites.
    package var sites: [String]
    /// Renews the access token; nil if the provider sent none, or called it invalid.
    package var refreshToken: Secret?
    /// The ID token; nil without one.
    package var identityToken: Secret?
    /// When the person signed in, in seconds since 1970.
    package var signedIn: Int64
    /// When the access token expires, in seconds since 1970; 0 if the provider does not say.
    package var expires: Int64
    /// Why the person has to sign in again; empty if that is not so.
    package var ended = ""
    /// Failed renewals since the last success.
    package var failures: UInt32 = 0
    /// When the last one failed, in seconds since 1970; 0 if none did.
    package var lastFailure: Int64 = 0
    /// When the access token was obtained, in seconds since 1970.
    package var obtained: Int64
    /// Tells the sign-in apart from others of its name: 32 hexadecimal digits; empty in a vault of an earlier version.
    package var identifier = ""
    /// When the access token was renewed last, in seconds since 1970; 0 if it was not.
    package var renewed: Int64 = 0
    /// Not nil while the list of sites may not have ``sites`` yet: the lines of the sign-in before, which it may have.
    package var formerSites: [String]?
    /// The kind of user agent that has shown the provider's pages; empty if it is not known.
    package var userAgent = ""
    /// The access tokens for one site alone, in the order in which they were stored.
    package var siteTokens: [SiteTokenRecord] = []
    /// The secret of the client at the provider; nil for a client without one.
    package var clientSecret: Secret?

    package init(
        name: String, profile: String, source: String, issuer: String, subject: String, account: String, scope: String,
        sites: [String], refreshToken: Secret?, identityToken: Secret?, signedIn: Int64, expires: Int64
    ) {
        self.name = name
        self.profile = profile
        self.source = source
        self.issuer = issuer
        self.subject = subject
        self.account = account
        self.scope = scope
        self.sites = sites
        self.refreshToken = refreshToken
        self.identityToken = identityToken
        self.signedIn = signedIn
        self.expires = expires
        obtained = signedIn
    }

    /// Whether `other` is the same sign-in at another time, and not another one of that name.
    package func isSame(as other: SignInRecord) -> Bool {
        name == other.name && identifier == other.identifier && issuer == other.issuer && signedIn == other.signedIn
    }
}

extension VaultContents {
    /// Stores a sign-in and its access token, in place of the sign-in of that name. Throws `invalidRecord` for a value
    /// outside ``VaultLimits``, and `nameInUse` if the name is that of another credential.
    package mutating func setSignIn(_ record: SignInRecord, accessToken: Secret) throws(VaultError) {
        try VaultLimits.check(record)
        if signIns[record.name] == nil, tokens[record.name] != nil { throw Self.nameInUse(record.name, by: "a token") }
        guard programs[record.name] == nil else { throw Self.nameInUse(record.name, by: "what a program writes") }
        let before = signIns.removeValue(forKey: record.name)
        do throws(VaultError) {
            try setToken(name: record.name, token: accessToken)
        } catch {
            signIns[record.name] = before
            throw error
        }
        signIns[record.name] = record
        // Without a subject, another sign-in may be that of another person.
        if let before,
            before.issuer != record.issuer || before.subject != record.subject
                || record.subject.isEmpty && before.identifier != record.identifier
        {
            tokenPermissions[record.name] = nil
        }
    }

    /// Replaces a sign-in and keeps its access token. Throws `invalidRecord` for a value outside ``VaultLimits``, and
    /// if there is no sign-in of that name.
    package mutating func updateSignIn(_ record: SignInRecord) throws(VaultError) {
        try VaultLimits.check(record)
        guard signIns[record.name] != nil else {
            throw VaultError(.invalidRecord, "there is no sign-in \(record.name.debugDescription)")
        }
        guard signIns[record.name] != record else { return }
        advance()
        signIns[record.name] = record
    }

    /// Removes a sign-in with its access token and returns whether there was one of that name.
    @discardableResult
    package mutating func removeSignIn(named name: String) -> Bool {
        guard signIns.removeValue(forKey: name) != nil else { return false }
        tokens[name] = nil
        compliance[name] = nil
        tokenPermissions[name] = nil
        advance()
        return true
    }

    /// Counts a change without making one, so that the vault is written. Shows that it can be.
    package mutating func touch() { advance() }
}

extension VaultLimits {
    package static let profileBytes = 64 << 10
    package static let signInSites = 64
    /// For the lines of several sign-ins that were not stored completely.
    package static let formerSignInSites = 1024
    /// The lines that a wipe removes: those of the sign-in, and its former ones.
    static let wipedSites = signInSites + formerSignInSites
    static let signInLineBytes = 4096

    /// Whether `line` can be a value of a sign-in, such as the scope.
    package static func isSignInLine(_ line: String) -> Bool {
        line.utf8.count <= signInLineBytes && !line.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }

    static func check(_ record: SignInRecord) throws(VaultError) {
        try check(name: record.name)
        let secrets = [
            (record.refreshToken, "refresh token"), (record.identityToken, "ID token"),
            (record.clientSecret, "client secret"),
        ]
        for (secret, what) in secrets {
            if let secret { try check(secret, what, upTo: passwordBytes) }
        }
        guard let fault = fault(of: record) else { return }
        throw VaultError(.invalidRecord, "the sign-in \(record.name.debugDescription) has \(fault)")
    }

    /// Why the record cannot be stored, its name and secrets not considered; nil if it can.
    static func fault(of record: SignInRecord) -> String? {
        if !(1...profileBytes).contains(record.profile.utf8.count) { return "a profile that is empty or too long" }
        if record.issuer.isEmpty { return "no issuer" }
        let lines = [
            record.source, record.issuer, record.subject, record.account, record.scope, record.ended,
            record.identifier, record.userAgent,
        ]
        let former = record.formerSites ?? []
        if !(lines + record.sites + former).allSatisfy(isSignInLine) { return "a value that is not one line of text" }
        if record.sites.count > signInSites { return "more than \(signInSites) sites" }
        if let fault = siteTokenFault(of: record) { return fault }
        if former.count > formerSignInSites { return "more than \(formerSignInSites) former sites" }
        let times = [record.signedIn, record.expires, record.lastFailure, record.obtained, record.renewed]
        return times.contains { $0 < 0 } ? "a time before 1970" : nil
    }
}

extension RecordWriter {
    mutating func append(_ record: SignInRecord) {
        for text in [
            record.name, record.profile, record.source, record.issuer, record.subject, record.account, record.scope,
        ] {
            field(text)
        }
        append(lines: record.sites)
        for secret in [record.refreshToken, record.identityToken] {
            append(UInt8(secret == nil ? 0 : 1))
            if let secret { field(secret) }
        }
        append(UInt64(clamping: record.signedIn))
        append(UInt64(clamping: record.expires))
        field(record.ended)
        append(record.failures)
        append(UInt64(clamping: record.lastFailure))
        append(UInt64(clamping: record.obtained))
        field(record.identifier)
        append(UInt64(clamping: record.renewed))
        append(UInt8(record.formerSites == nil ? 0 : 1))
        if let former = record.formerSites { append(lines: former) }
        // Without them, earlier versions can read the record.
        let hasMore = record.clientSecret != nil || !record.siteTokens.isEmpty
        if !record.userAgent.isEmpty || hasMore { field(record.userAgent) }
        guard hasMore else { return }
        append(UInt8(record.clientSecret == nil ? 0 : 1))
        if let secret = record.clientSecret { field(secret) }
        if !record.siteTokens.isEmpty { append(record.siteTokens) }
    }

    mutating func append(lines: [String]) {
        append(UInt32(lines.count))
        for line in lines { field(line) }
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func signIn(named name: String) throws(VaultError) -> SignInRecord {
        let (profile, source, issuer) = (try text(), try text(), try text())
        let (subject, account, scope) = (try text(), try text(), try text())
        let sites = try lines(upTo: VaultLimits.signInSites)
        let refreshToken = try flag() ? try secret(upTo: VaultLimits.passwordBytes) : nil
        let identityToken = try flag() ? try secret(upTo: VaultLimits.passwordBytes) : nil
        var record = SignInRecord(
            name: name, profile: profile, source: source, issuer: issuer, subject: subject, account: account,
            scope: scope, sites: sites, refreshToken: refreshToken, identityToken: identityToken,
            signedIn: try time(), expires: try time())
        record.ended = try text()
        record.failures = try number(UInt32.self)
        record.lastFailure = try time()
        // Vaults written before these fields existed end here.
        if !isAtEnd { record.obtained = try time() }
        if !isAtEnd {
            record.identifier = try text()
            record.renewed = try time()
            if try flag() { record.formerSites = try lines(upTo: VaultLimits.formerSignInSites) }
        }
        if !isAtEnd {
            record.userAgent = try text()
            guard !record.userAgent.isEmpty || !isAtEnd else {
                throw Self.malformed("a sign-in with an empty user agent")
            }
        }
        if !isAtEnd {
            let hasSecret = try flag()
            if hasSecret { record.clientSecret = try secret(upTo: VaultLimits.passwordBytes) }
            if !hasSecret || !isAtEnd { record.siteTokens = try siteTokens() }
        }
        if let fault = VaultLimits.fault(of: record) { throw Self.malformed("a sign-in with \(fault)") }
        return record
    }

    mutating func lines(upTo limit: Int) throws(VaultError) -> [String] {
        let count = try number(UInt32.self)
        guard count <= limit else { throw Self.malformed("a sign-in with \(count) sites") }
        var lines: [String] = []
        for _ in 0..<count { lines.append(try text()) }
        return lines
    }
}
