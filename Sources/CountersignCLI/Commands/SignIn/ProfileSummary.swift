// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignOAuth
import CountersignSignIn
import CountersignSitePolicy

/// The effects of a profile, for the person to confirm.
struct ProfileSummary {
    let text: String

    /// `former` is the sign-in that is replaced, `list` the present list of sites.
    init(_ plan: SignInPlan, agent: UserAgentKind, former: ListedSignIn?, list: SiteList) {
        let (profile, name) = (plan.profile, plan.name)
        let request = profile.request
        var rows =
            Self.provider(profile) + [
                ("name", name), ("scopes", request.scopes.joined(separator: " ")),
                profile.usesBroker
                    ? ("tokens", "from the identity broker of this machine")
                    : profile.grant.map { ("tokens", Self.tokens(by: $0)) } ?? ("user agent", agent.rawValue),
            ]
        if !request.resources.isEmpty { rows.append(("resources", request.resources.joined(separator: " "))) }
        for parameter in request.parameters + request.tokenParameters {
            rows.append(("parameter", "\(parameter.name)=\(parameter.value)"))
        }
        if agent == .embedded, !profile.navigationOrigins.isEmpty {
            let hosts = profile.navigationOrigins.map(\.authority).joined(separator: " ")
            rows.append(("window", "also shows pages of \(hosts)"))
        }
        if agent == .embedded, let special = profile.specialURLs { rows += Self.deviceManagement(special) }
        if agent == .embedded, let types = profile.pageMessages {
            rows.append(("questions", "the page may ask for \(types.joined(separator: " "))"))
        }
        if let former {
            let account = former.account.isEmpty ? "the sign-in" : former.account
            rows.append(("replaces", "\(account) at \(former.issuer)"))
        }
        for site in profile.sites { rows.append(("site", "\(site), whose Bearer challenges get the access token")) }
        if profile.sites.isEmpty {
            rows.append(("sites", "none; a line with credential=\(name) answer=bearer uses the access token"))
        }
        rows += Self.certificate(of: plan, list)
        if let service = profile.compliance {
            rows.append(("compliance", "\(service.url) says whether this device complies with a policy"))
            if service.takesAccessToken { rows.append(("compliance", "it gets the access token")) }
            if let days = service.wipeAfterDays {
                let unit = days == 1 ? "day" : "days"
                rows.append(
                    (
                        "compliance",
                        "all this is removed if nobody confirms for \(days) \(unit) that the device complies"
                    )
                )
            }
            if service.sendsCapability { rows.append(("compliance", "the provider is told that policies are applied")) }
        }
        if let session = profile.session {
            let cookies = session.cookies.joined(separator: ", ")
            rows.append(("session", "\(cookies) of \(session.site), for all clients of group \(session.group)"))
        }
        let replaced = Set(plan.sites + (former?.sites ?? []))
        for rule in list.rules where rule.credential == name && rule.answer.contains(.bearer) {
            guard !replaced.contains(rule.text) else { continue }
            rows.append(("listed site", "\(rule.pattern), whose Bearer challenges get it too (\(rule.location))"))
        }
        let width = rows.map(\.0.count).max() ?? 0
        let lines = rows.map { key, value in
            "  \(key)\(String(repeating: " ", count: width - key.count))  \(Console.printable(value))\n"
        }
        text = "\(Console.printable(plan.source)) signs you in:\n\(lines.joined())"
    }

    /// The provider, its endpoints if the profile names them, and the client.
    private static func provider(_ profile: SignInProfile) -> [(String, String)] {
        var rows = [("provider", profile.issuer.text)]
        if let named = profile.metadata {
            if let endpoint = named.authorizationEndpoint, profile.grant == nil {
                rows.append(("sign-in page", endpoint.description))
            }
            rows.append(("token endpoint", named.tokenEndpoint.description))
            // They get the client's secret, or tokens.
            for endpoint in [named.deviceAuthorizationEndpoint, named.revocationEndpoint].compactMap({ $0 })
            where endpoint.origin != named.tokenEndpoint.origin {
                rows.append(("endpoint", "\(endpoint), which gets the client's secret or tokens"))
            }
        }
        let key = profile.clientIdentity.map { ", with the key of your identity \(Console.printable($0.name))" } ?? ""
        let secret =
            switch profile.clientAuthentication {
            case .grantKey: ", with its private key, which stays in the vault"
            case .secret, .basic, .post: ", with its secret"
            case .none, .privateKey: key
            }
        let client = profile.request.client.identifier
        rows.append(("client", client.isEmpty ? "none" : "\(client)\(secret)"))
        return rows
    }

    /// Without a person.
    private static func tokens(by grant: MachineGrant) -> String {
        let file = grant.file.map { ", with the token in \($0), which the provider gets each time" } ?? ""
        return "without a person, by \(grant.name)\(file)\(limits(of: grant))"
    }

    private static func limits(of grant: MachineGrant) -> String {
        switch grant {
        case .clientCredentials, .assertion, .exchange: return ""
        case .signedAssertion(let assertion): return assertion.subject.map { ", in the name of \($0)" } ?? ""
        case .installation(let installation):
            let repositories = installation.repositories.joined(separator: " ")
            let permissions = installation.permissions.map { "\($0.name):\($0.level)" }.joined(separator: " ")
            return (repositories.isEmpty ? ", for all its repositories" : ", for \(repositories)")
                + (permissions.isEmpty ? " and permissions" : ", with \(permissions)")
        }
    }

    /// The changes that the provider's pages may make to the device.
    private static func deviceManagement(_ special: SpecialURLSettings) -> [(String, String)] {
        var rows = [("device", "the pages may enrol it, and offer configuration profiles: special URLs are on")]
        let hosts = special.hosts.map(\.authority).joined(separator: " ")
        if !hosts.isEmpty { rows.append(("device", "also shows enrolment pages of \(hosts)")) }
        let handoffs = special.handoffHosts.map(\.authority).joined(separator: " ")
        if !handoffs.isEmpty { rows.append(("device", "\(handoffs) may open a second window")) }
        for header in special.headers { rows.append(("device", "enrolment pages get \(header.name): \(header.value)")) }
        for parameter in special.parameters {
            rows.append(("device", "enrolment pages get \(parameter.name)=\(parameter.value)"))
        }
        if special.brokerToken == .fail { rows.append(("device", "needs a refresh token of the identity broker")) }
        return rows
    }

    /// The certificate that follows the sign-in: its issuer, the anchors that verify the service, and the data that the
    /// service gets.
    private static func certificate(of plan: SignInPlan, _ list: SiteList) -> [(String, String)] {
        guard let service = plan.profile.certificates else { return [] }
        var rows = [
            (
                "certificate",
                "identity \"\(plan.name)\" from the EST service \(service.endpoint.description), with a new key"
            )
        ]
        for anchor in service.anchors {
            rows.append(("anchor", "\(anchor.subject), \(anchor.fingerprintText), for this service alone"))
        }
        rows.append(("answers it", "the access token, on a Bearer challenge"))
        let listed = list.authentication(at: service.endpoint.origin)
        if let name = listed?.credential {
            rows.append(("answers it", "credential \"\(name)\", on a Basic or Digest challenge: its site is listed"))
        }
        if let name = listed?.identity, name != plan.name {
            rows.append(
                ("answers it", "identity \"\(name)\", if the service asks for a certificate: its site is listed"))
        }
        return rows + service.sites.map { ("site", "\($0), which gets the certificate when it asks for one") }
    }
}
