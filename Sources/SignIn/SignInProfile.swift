// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import CountersignDeviceManagement
import CountersignJSON
import CountersignOAuth
import CountersignSitePolicy

/// How an organisation's people sign in: a JSON document that it hands out. `Documentation/profile.schema.json`
/// describes it.
package struct SignInProfile: Sendable {
    /// The whole document.
    package let text: String
    /// The name of the sign-in and of its access token; nil if it is ``SignInName/implied(by:)``.
    package let name: String?
    package let issuer: Issuer
    /// The provider's metadata, if the profile names the endpoints; nil if the provider publishes it.
    package let metadata: ProviderMetadata?
    package let transport: EndpointURL.Transport
    /// How the client proves who it is. The profile does not have its secret.
    package let clientAuthentication: ClientAuthenticationMethod
    /// Whose key the client proves who it is with, if it does that with a key.
    package let clientIdentity: ClientIdentity?
    /// The grant of a sign-in without a person; nil for a person's.
    package let grant: MachineGrant?
    package private(set) var request: SignInRequest
    package private(set) var redirect: RedirectURI
    /// Nil if the machine decides.
    package let userAgent: UserAgentKind?
    /// More origins that the sign-in's pages may be on, for an agent that restricts navigation.
    package let navigationOrigins: [Origin]
    /// How the sign-in's pages may manage the device; nil if they may not.
    package private(set) var specialURLs: SpecialURLSettings?
    /// The types of callbacks in messages of the provider's page that may be answered; nil if there are no messages.
    package let pageMessages: [String]?
    /// The sites that the access token is for, as `AllowedSites` writes them, without options.
    package let sites: [String]
    /// The session of the provider that the clients of a group share; nil for none.
    package let session: SessionScope?
    /// Issues a client certificate after the sign-in; nil for none.
    package let certificates: CertificateService?
    /// Knows whether the device complies with the organisation's policy; nil for none.
    package let compliance: ComplianceService?
    /// Whether the tokens are bound to a key (RFC 9449).
    package let usesDPoP: Bool
    /// Whether the identity broker of the machine issues the tokens, in place of the provider's pages.
    package let usesBroker: Bool

    /// The largest document, in bytes.
    package static let maximumBytes = 64 << 10
    private static let maximumSites = 64
    private static let maximumNavigationHosts = 32
    private static let maximumMessageTypes = 32

    /// Throws ``JSONError`` for a document that is not a profile, and ``OAuthError`` for a value that OAuth does not
    /// permit. Both say line and column.
    package init(_ document: [UInt8]) throws {
        let value = try JSONParser.parse(document, limits: JSONLimits(bytes: Self.maximumBytes))
        var reader = try JSONReader(value, "the profile", .strict)
        text = String(decoding: document, as: UTF8.self)
        _ = try reader.stringIfPresent("$schema")
        name = try reader.stringIfPresent("name")
        if let fault = name.flatMap(SignInName.fault) { throw reader.invalid("name", fault) }
        let provider = try ProviderSettings(&reader)
        (issuer, metadata, transport) = (provider.issuer, provider.metadata, provider.transport)
        let settings = try ClientSettings(&reader)
        (clientAuthentication, grant) = (settings.authentication, settings.grant)
        clientIdentity = settings.identity
        let scopes = try Self.strings("scopes", &reader) { scope throws(OAuthError) in
            try SignInRequest.check(scope: scope)
        }
        let defaultScopes = settings.grant == nil && provider.verifiesIDTokens ? ["openid", "offline_access"] : []
        if scopes?.contains("openid") == true { try Self.checkOpenID(provider, settings, reader) }
        let resources = try Self.strings("resources", &reader) { resource throws(OAuthError) in
            try SignInRequest.check(resource: resource)
        }
        redirect = try Self.redirect(&reader)
        userAgent = try Self.userAgent(&reader)
        request = try SignInRequest(
            client: Client(settings.identifier), scopes: scopes ?? defaultScopes,
            resources: resources ?? [],
            parameters: try Self.parameters("parameters", &reader),
            tokenParameters: try Self.parameters("token_parameters", &reader),
            prompt: try reader.stringIfPresent("prompt"), usesFormPost: try reader.boolIfPresent("form_post") ?? false)
        navigationOrigins = try Self.origins("navigation_hosts", &reader, upTo: Self.maximumNavigationHosts)
        specialURLs = try SpecialURLSettings(&reader)
        pageMessages = try Self.pageMessages(&reader)
        sites = try Self.sites(&reader, upTo: Self.maximumSites)
        session = try SessionScope(&reader, issuer: issuer, sites: sites)
        certificates = try CertificateService(&reader)
        compliance = try ComplianceService(&reader, origins: [issuer.url.origin] + navigationOrigins, transport)
        request.asksForClientInfo = compliance != nil
        if let claims = reader.valueIfPresent("claims") {
            request = try claims.position.locating { [request] () throws(OAuthError) in
                try request.adding(claims: claims)
            }
        }
        if compliance?.sendsCapability == true { request = try request.adding(claims: ClaimsRequest.protection) }
        usesBroker = try reader.boolIfPresent("broker") ?? false
        usesDPoP = try reader.boolIfPresent("dpop") ?? false
        if usesDPoP, usesBroker {
            throw reader.invalid("dpop", "is not for \"broker\", which issues bearer tokens")
        }
        if usesDPoP, certificates != nil {
            throw reader.invalid("dpop", "is not for \"est\", whose server accepts bearer tokens alone")
        }
        try provider.check(for: grant, reader)
        try reader.finish()
        guard siteLines(name: "").count <= Self.maximumSites else {
            throw reader.invalid("sites", "and the sites of \"est\" and \"session\" are more than \(Self.maximumSites)")
        }
    }

    private static func redirect(_ reader: inout JSONReader) throws -> RedirectURI {
        let key = "redirect_uri"
        let text = try reader.stringIfPresent(key) ?? "http://127.0.0.1/"
        return try reader.position(of: key).locating { () throws(OAuthError) in try RedirectURI(text) }
    }

    private static func userAgent(_ reader: inout JSONReader) throws -> UserAgentKind? {
        guard let text = try reader.stringIfPresent("user_agent") else { return nil }
        guard let kind = UserAgentKind(rawValue: text) else {
            let known = UserAgentKind.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw reader.invalid("user_agent", "must be one of \(known)")
        }
        return kind
    }

    /// An array of strings that all pass `check`.
    private static func strings(
        _ key: String, _ reader: inout JSONReader, _ check: (String) throws(OAuthError) -> Void
    ) throws -> [String]? {
        guard let strings = try reader.stringsIfPresent(key) else { return nil }
        let values = try reader.arrayIfPresent(key) ?? []
        for (string, value) in zip(strings, values) {
            try value.position.locating { () throws(OAuthError) in try check(string) }
        }
        return strings
    }

    private static func parameters(
        _ key: String, _ reader: inout JSONReader
    ) throws -> [SignInRequest.Parameter] {
        guard let value = reader.valueIfPresent(key) else { return [] }
        guard case .object(let members) = value.content else { throw reader.invalid(key, "must be an object") }
        return try members.map { member in
            guard case .string(let text) = member.value.content else {
                throw JSONError(.wrongValue, at: member.value.position, "\"\(member.name)\" must be a string")
            }
            let parameter = SignInRequest.Parameter(member.name, text)
            try member.position.locating { () throws(OAuthError) in try SignInRequest.check(parameter) }
            return parameter
        }
    }

    /// https only, and exact hosts.
    static func origins(_ key: String, _ reader: inout JSONReader, upTo limit: Int) throws -> [Origin] {
        let hosts = try reader.stringsIfPresent(key) ?? []
        guard hosts.count <= limit else { throw reader.invalid(key, "has more than \(limit) entries") }
        return try hosts.map { host in
            guard !host.utf8.contains(where: { "/?#@*".utf8.contains($0) }),
                let url = try? EndpointURL("https://\(host)", key)
            else {
                throw reader.invalid(key, "must list hosts, such as login.corp.example or mfa.corp.example:8443")
            }
            return url.origin
        }
    }

    private static func pageMessages(_ reader: inout JSONReader) throws -> [String]? {
        guard var messages = try reader.objectIfPresent("page_messages") else { return nil }
        let types = try messages.strings("types")
        guard (1...maximumMessageTypes).contains(types.count), types.allSatisfy({ isCallbackType($0) }) else {
            throw messages.invalid("types", "must list 1 to \(maximumMessageTypes) types, such as NameCallback")
        }
        try messages.finish()
        return types
    }

    private static func isCallbackType(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { ($0 | 0x20) &- UInt8(ascii: "a") < 26 || $0 &- UInt8(ascii: "0") < 10 }
    }

    /// Only sites: an option such as `credential=` could send another credential of the person there.
    static func sites(_ reader: inout JSONReader, upTo limit: Int) throws -> [String] {
        let sites = try reader.stringsIfPresent("sites") ?? []
        guard sites.count <= limit else { throw reader.invalid("sites", "has more than \(limit) entries") }
        let values = try reader.arrayIfPresent("sites") ?? []
        for (site, value) in zip(sites, values)
        where site.isEmpty || site.contains(where: { $0.isWhitespace || $0 == "#" }) {
            throw JSONError(
                .wrongValue, at: value.position,
                "\"sites\" must list sites without options, such as https://api.corp.example")
        }
        return sites
    }

    /// Whether the provider can send the person back to a user agent of this kind. Throws `profile`.
    package func check(_ kind: UserAgentKind) throws(SignInError) {
        switch kind {
        case .system, .systemPrivate: if redirect.address == nil { throw .unnoticed(redirect) }
        case .embedded:
            guard !request.usesFormPost else {
                throw SignInError(
                    .profile, "the profile's form_post does not work with the user agent embedded",
                    hint: "use --user-agent system, or ask for a profile without form_post")
            }
        case .device: break
        }
    }

    /// The same profile, with more scopes to ask for. Throws `configuration` for one that cannot be sent, or that the
    /// identity broker would not ask for again.
    package func adding(scopes: [String]) throws(OAuthError) -> SignInProfile {
        guard !usesBroker || scopes.allSatisfy(request.scopes.contains) else {
            throw OAuthError(
                .configuration, .profile, "the identity broker renews tokens for the profile's scopes only",
                hint: "ask the organisation for a profile with this scope")
        }
        if case .installation? = grant, !scopes.isEmpty {
            throw OAuthError(
                .configuration, .profile, "the token of a GitHub App has permissions in place of scopes",
                hint: "change \"permissions\" in the profile")
        }
        var profile = self
        profile.request = try request.adding(scopes: scopes)
        return profile
    }

    /// The same profile, with what a site requires. Throws `configuration` for what cannot be sent, or the identity
    /// broker would not ask for.
    package func adding(_ stepUp: StepUp) throws(OAuthError) -> SignInProfile {
        guard stepUp.isForOneSite else { return try adding(scopes: stepUp.scopes) }
        guard !usesBroker else {
            throw OAuthError(
                .configuration, .profile,
                "the identity broker issues the tokens, and cannot be asked for more than the profile says",
                hint: "ask the organisation for a profile with the claims that the site requires")
        }
        var profile = try adding(scopes: stepUp.scopes)
        if let claims = stepUp.claims { profile.request = profile.request.adding(challenge: claims) }
        profile.request = try profile.request.requiring(acrValues: stepUp.acrValues, maxAge: stepUp.maxAge)
        return profile
    }

    /// The same profile, whose access token is for this API. The person agrees to those of the profile, too, because
    /// the refresh token is for all that was agreed to (RFC 8707 §2.2).
    package func asking(for resource: String) -> SignInProfile {
        var profile = self
        if !request.resources.contains(resource) { profile.request.resources.append(resource) }
        profile.request.tokenResources = [resource]
        return profile
    }

    /// The same profile, whose client has its secret. Throws `configuration` for one that cannot be sent.
    /// If the client signs its grants, the secret is its private key, in one of the forms of ``GrantKey``.
    package func authenticated(with secret: Secret) throws(OAuthError) -> SignInProfile {
        var profile = self
        if clientAuthentication == .grantKey {
            profile.request.client = Client(request.client.identifier, .grantKey(try GrantKey.pkcs8(secret)))
            return profile
        }
        profile.request.client = Client(
            request.client.identifier, try clientAuthentication.authentication(with: secret))
        return profile
    }

    /// The same profile, whose client has the key of ``clientIdentity``.
    package func authenticated(with key: ClientKey) -> SignInProfile {
        var (profile, key) = (self, key)
        key.identifier = clientIdentity?.keyIdentifier
        profile.request.client = Client(request.client.identifier, .key(key))
        return profile
    }

    /// The same profile, whose tokens are bound to the key, if it asks for that. Another key than that of the sign-in's
    /// refresh token would make that useless.
    package func bound(to key: ES256Key?) -> SignInProfile {
        var profile = self
        if usesDPoP { profile.request.proofKey = key ?? ES256Key.random() }
        return profile
    }

    /// The same profile, whose redirect URI has a port of the loopback interface. Throws `profile` for a redirect URI
    /// that is not on it.
    package func redirecting(toPort port: UInt16) throws(SignInError) -> SignInProfile {
        var profile = self
        guard let moved = redirect.moved(toPort: port) else {
            throw SignInError(
                .profile, "the redirect URI \(redirect) is not on the loopback interface, and has no port to choose",
                hint: "leave --redirect-port out")
        }
        profile.redirect = moved
        return profile
    }

    /// The same profile, with other wishes for one sign-in, as ``SignInRequest/changing(prompt:loginHint:parameters:)``
    /// takes them.
    package func changing(
        prompt: String?, loginHint: String?, parameters: [SignInRequest.Parameter]
    ) throws(OAuthError) -> SignInProfile {
        var profile = self
        profile.request = try request.changing(prompt: prompt, loginHint: loginHint, parameters: parameters)
        return profile
    }

    /// The same profile, whose pages may manage the device.
    package func enablingSpecialURLs() -> SignInProfile {
        var profile = self
        profile.specialURLs = specialURLs ?? .standard
        return profile
    }

    /// The lines for the list of sites, for a sign-in of that name.
    package func siteLines(name: String) -> [String] {
        // A site is written once, whether it gets the token, the certificate, or both.
        let certified = certificates?.sites ?? []
        let all = sites + certified.filter { Self.index(of: $0, in: sites) == nil }
        var lines = all.map { site in
            let getsToken = Self.index(of: site, in: sites) != nil
            let isCertified = Self.index(of: site, in: certified) != nil
            var words = [site]
            switch (getsToken, isCertified) {
            case (true, true): words += ["answer=certificate,bearer", "credential=\(name)", "identity=\(name)"]
            case (true, false): words += ["answer=bearer", "credential=\(name)"]
            case (false, _): words += ["answer=certificate", "identity=\(name)"]
            }
            return words.joined(separator: " ")
        }
        guard let session else { return lines }
        if let index = Self.index(of: session.site.description, in: all) {
            lines[index] += " \(session.options)"
        } else {
            lines.append("\(session.site.description) answer=none \(session.options)")
        }
        return lines
    }

    /// Where `sites` has the site, however it is written.
    private static func index(of site: String, in sites: [String]) -> Int? {
        let pattern = try? SitePattern(parsing: site, publicSuffixes: .none)
        return sites.firstIndex { other in
            other == site || pattern != nil && (try? SitePattern(parsing: other, publicSuffixes: .none)) == pattern
        }
    }
}

extension JSONPosition {
    /// Runs `body`, and puts this place before the text of its error.
    func locating<Value>(_ body: () throws(OAuthError) -> Value) throws(OAuthError) -> Value {
        do throws(OAuthError) {
            return try body()
        } catch {
            throw OAuthError(error.code, error.fault, "\(self): \(error.detail)", hint: error.hint)
        }
    }
}

extension RedirectURI {
    /// Where to listen for a loopback redirect; nil for another kind.
    package var address: RedirectAddress? {
        guard case .loopback(let host, let port) = kind else { return nil }
        let written: RedirectAddress.Host =
            switch host {
            case "127.0.0.1": .ipv4
            case "::1": .ipv6
            default: .localhost
            }
        return RedirectAddress(host: written, port: port ?? 0, path: path)
    }
}
