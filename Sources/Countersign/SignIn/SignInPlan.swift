// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignHome
package import CountersignOAuth
package import CountersignSignIn
import CountersignVault

/// A sign-in that a profile describes, from its checks to the vault. The library and `countersign enroll` take the same
/// steps: ``check(_:)``, the person's consent, ``prepare(replacing:in:)``, ``SignInFlow``, and storing the result.
package struct SignInPlan: Sendable {
    package internal(set) var profile: SignInProfile
    /// The file or URL of the profile.
    package let source: String
    /// The name of the sign-in and of its access token.
    package let name: String
    /// Whether the sign-in keeps the valid certificate of the one that it replaces.
    package var keepsCertificate = false
    /// The tokens are for one site alone, which requires this; nil for all sites of the sign-in.
    package var demand: SiteDemand?
    /// Whether the person, or the program, chose the name.
    private let isNameChosen: Bool

    /// Without a `name`, the profile's, else the provider's host. Throws `configuration` for one that cannot name a
    /// sign-in.
    package init(_ profile: SignInProfile, from source: String, name: String?) throws {
        self.profile = profile
        self.source = source
        self.name = name ?? profile.name ?? SignInName.implied(by: profile.issuer)
        isNameChosen = name != nil
        try SignInName.check(self.name)
    }

    /// Gives the client its secret. Throws `configuration` for one that cannot be sent.
    package mutating func authenticate(with secret: Secret) throws { profile = try profile.authenticated(with: secret) }

    /// The lines that the sign-in adds to the list of sites.
    package var sites: [String] { profile.siteLines(name: name) }

    /// The default user agent.
    package func userAgent(in environment: [String: String]) -> UserAgentKind {
        profile.userAgent ?? UserAgentKind.preferred(in: environment)
    }

    /// The stored sign-in of that name, which the new one replaces.
    package func former(in vault: any OperationPerformer) throws -> ListedSignIn? {
        try vault.perform(ListSignIns()).first { $0.name == name }
    }

    /// Another provider's profile must not take over a name that was not chosen for it: the sites with that name would
    /// get its token. Throws `nameInUse`.
    package func check(_ former: ListedSignIn?) throws {
        guard let former, former.issuer != profile.issuer.text, !isNameChosen else { return }
        throw CountersignError(
            .nameInUse,
            "the sign-in \(name.debugDescription) is at \(former.issuer), and the profile's provider is "
                + "\(profile.issuer)",
            hint: "choose another name with --name, replace it with --name \(name), or end it with "
                + "`countersign unenroll \(name)`")
    }

    /// Throws unless the sign-in can be stored, and replaces the sign-in that the person has agreed to replace.
    package func prepare(replacing former: ListedSignIn?, in vault: any OperationPerformer) throws {
        let present = try vault.perform(
            CheckSignIn(name: name, sites: sites, obtainsCertificate: profile.certificates != nil))
        guard present?.issuer == former?.issuer else {
            throw CountersignError(.refused, "another sign-in \(name.debugDescription) was stored meanwhile")
        }
    }

    /// Stores the tokens and the sites.
    func store(_ new: NewSignIn, _ result: SignInResult, in vault: any OperationPerformer) throws {
        let tokens = SignInTokens(result.tokens, of: profile).encoded
        if let demand {
            _ = try vault.perform(storing(new, for: demand), secret: tokens)
        } else {
            _ = try vault.perform(StoreSignIn(new), secret: tokens)
        }
    }

    /// Stores the tokens for one site.
    package func storing(_ new: NewSignIn, for demand: SiteDemand) -> StoreSiteToken {
        StoreSiteToken(
            signIn: new.name, subject: new.subject, issuer: new.issuer, client: profile.request.client.identifier,
            for: demand, expires: new.expires)
    }

    /// The completed sign-in on its way into the vault. `broker` is the identity broker's result, if it has issued the
    /// tokens; `former` is the sign-in that the person has agreed to replace; `now` is in seconds since 1970.
    package func signIn(
        _ result: SignInResult, _ broker: BrokerSignIn.Result? = nil, replacing former: ListedSignIn?, at now: Int64
    ) -> NewSignIn {
        var new = NewSignIn(
            name: name, profile: profile.text, source: source, issuer: profile.issuer.text,
            subject: broker?.subject ?? result.idToken?.subject ?? "",
            account: broker?.account ?? result.idToken?.accountName ?? (profile.grant == nil ? "" : profile.clientName),
            scope: result.tokens.scope ?? "", sites: sites, signedIn: now, expires: result.tokens.expiresAt ?? 0,
            formerIssuer: former?.issuer)
        if keepsCertificate { new.keepsCertificate = true }
        if profile.compliance != nil {
            new.homeAccount = result.tokens.clientInfo?.homeAccountIdentifier ?? broker?.homeAccount ?? ""
        }
        return new
    }
}

// MARK: Profiles

extension SignInProfile {
    /// Reads a profile from a file, or from an https URL with `client`, and returns it with its source: the URL, or the
    /// absolute path. Errors of its contents name `place`.
    package static func read(
        _ place: String, with client: ProviderClient
    ) async throws -> (profile: SignInProfile, source: String) {
        guard place.contains("://") else { return try read(file: place) }
        let url = try EndpointURL(place, "the profile's address")
        return (try parsed(try await client.profile(at: url), from: place), place)
    }

    /// Reads a profile from a file, and returns it with the file's absolute path.
    package static func read(file path: String) throws -> (profile: SignInProfile, source: String) {
        let document = try HomeFile(path: path).read(upTo: SignInProfile.maximumBytes)
        return (try parsed(document, from: path), HomeFile.absolutePath(path) ?? path)
    }

    /// Throws `configuration` for a document that is not a profile, with the place and, if possible, line and column.
    package static func parsed(_ document: [UInt8], from place: String) throws -> SignInProfile {
        do {
            return try SignInProfile(document)
        } catch {
            guard let diagnostic = Diagnostic.all(in: error).first else { throw error }
            throw CountersignError(
                .configuration, "\(place): \(diagnostic.message)",
                hint: diagnostic.hint ?? "Documentation/profile.schema.json describes profiles")
        }
    }
}
