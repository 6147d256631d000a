// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
package import CountersignCryptography
import CountersignHome
import CountersignSitePolicy
import CountersignVault

/// Gives out the access token of a sign-in that the person has permitted to give out, and renews it first if it expires
/// soon. With a site, only if the list of sites names that sign-in there; without a name, the sign-in that the list
/// names.
package struct GiveToken: VaultOperation {
    package static let name = "giveToken"
    private let name: String?
    private let site: String?

    /// `site` is a URL, or a host for https.
    package init(name: String, site: String? = nil) {
        self.name = name
        self.site = site
    }

    package init(site: String, name: String? = nil) {
        self.name = name
        self.site = site
    }

    package var isLong: Bool { true }

    package func change(_ result: TokenAnswer) -> String? {
        if case .given(let token) = result {
            "given out the access token of \(token.name.debugDescription)"
        } else {
            nil
        }
    }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> TokenAnswer {
        let listed: String?
        var origin: Origin?
        switch try site.map({ try vault.signIn(listedFor: $0, wanted: name) }) {
        case .signIn(let name, let listedOrigin): (listed, origin) = (name, listedOrigin)
        case .refused(let reason): return .notForSite(reason: reason.text, hint: reason.hint)
        case nil: listed = name
        }
        guard let name = listed, let open = vault.vault else { return .unknown(known: []) }
        try open.reload()
        let contents = open.contents
        guard contents.signIns[name] != nil else {
            guard contents.credentialNames.contains(name) else { return .unknown(known: vault.signInNames) }
            throw CountersignError(
                .refused, "credential \(name.debugDescription) is not a sign-in, and only access tokens are given out",
                hint: "`countersign status` lists the sign-ins")
        }
        guard contents.tokenPermissions[name] != nil else {
            throw CountersignError(
                .refused, "the access token of \"\(name)\" is not given out",
                hint: "permit it with `countersign token allow \(name)`")
        }
        // The site may have required more than others do.
        if let origin, let record = contents.signIns[name], record.ended.isEmpty, contents.withheld[name] == nil,
            let own = record.siteToken(for: origin), own.isFresh(at: vault.now())
        {
            guard own.token(named: name).bound == nil else { throw TokenUnavailable.bound(record) }
            return .given(GivenToken(own, of: name))
        }
        let tokens = FreshTokens(home: vault.home, vault: open, renewals: vault.renewals, now: vault.now)
        do {
            let fresh = try Blocking.run(isAbandoned: dialogue.isAbandoned) { try await tokens.token(of: name) }
            guard let fresh else { return .unknown(known: vault.signInNames) }
            return .given(GivenToken(fresh))
        } catch is CancellationError {
            throw VaultOperations.interrupted
        }
    }
}

extension VaultOperations {
    fileprivate enum Listed {
        case signIn(String, Origin)
        case refused((text: String, hint: String?))
    }

    /// The sign-in whose access token answers the Bearer challenges of a site.
    fileprivate func signIn(listedFor site: String, wanted: String?) throws -> Listed {
        let origin = try AbsoluteURL(parsing: site, defaultScheme: .https).origin
        guard origin.scheme == .https else {
            return .refused(("access tokens are sent over https only, and not to \(origin)", nil))
        }
        let line = "\(origin) answer=bearer credential=\(wanted ?? "NAME")"
        let sites = try home.sites()
        let lines = sites.rules(for: origin)
        guard let first = lines.first else {
            return .refused(("\(origin) is not listed", "`countersign sites add \(line)` lists it"))
        }
        // A program that has the token can send it with any request.
        if let limited = lines.first(where: { $0.limits != nil }) {
            return .refused(("\(origin) is listed for some requests only (\(limited.location))", nil))
        }
        guard let rule = lines.first(where: \.isForAllClients) else {
            return .refused(("\(origin) is listed for some clients only (\(first.location))", nil))
        }
        guard rule.answer.contains(.bearer) else {
            return .refused(("\(origin) is listed without answer=bearer (\(rule.location))", nil))
        }
        if let wanted, rule.credential != wanted {
            return .refused(("\(origin) gets the credential \"\(rule.credential)\" (\(rule.location))", nil))
        }
        guard contents?.signIns[rule.credential] != nil else {
            return .refused(
                ("\(origin) gets the credential \"\(rule.credential)\", which is not a sign-in (\(rule.location))", nil)
            )
        }
        return .signIn(rule.credential, origin)
    }
}

/// The result of ``GiveToken``.
package enum TokenAnswer: Codable, Sendable {
    case given(GivenToken)
    /// There is no sign-in of that name; these are the names that exist.
    case unknown(known: Set<String>)
    /// The list of sites does not give the site this token, or any.
    case notForSite(reason: String, hint: String?)
}

/// An access token that has left the vault. Its description does not contain it.
package struct GivenToken: Codable, Sendable, CustomStringConvertible {
    /// The name of the sign-in.
    package let name: String
    package let accessToken: String
    /// When it expires, in seconds since 1970; nil if the provider does not say.
    package let expires: Int64?
    /// The scope that was granted, as the provider writes it.
    package let scope: String

    init(_ fresh: FreshToken) {
        name = fresh.record.name
        accessToken = fresh.token.token.utf8Text ?? ""
        expires = fresh.record.expires == 0 ? nil : fresh.record.expires
        scope = fresh.record.scope
    }

    init(_ token: SiteTokenRecord, of signIn: String) {
        name = signIn
        accessToken = token.access.utf8Text ?? ""
        expires = token.expires == 0 ? nil : token.expires
        scope = token.stepUp.scopes.joined(separator: " ")
    }

    package var description: String { "the access token of \(name.debugDescription)" }
}

extension SiteTokenRecord {
    /// Whether it can be used for a minute more.
    fileprivate func isFresh(at time: Int64) -> Bool { expires == 0 || expires - 60 > time }
}
