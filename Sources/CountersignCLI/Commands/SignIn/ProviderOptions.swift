// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import CountersignSignIn

/// `--client-id`, `--tenant` and `--issuer`, for profiles that nobody hands out.
struct ProviderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Your own client at the provider, for google, github, gitlab, bitbucket, azure-devops, entra, github-app, "
                + "and sites. For a site, it may be the address of a client's metadata document.",
            valueName: "id"))
    var clientID: String?

    @Option(help: ArgumentHelp("The identifier of your directory, for azure-devops and entra.", valueName: "id"))
    var tenant: String?

    @Option(
        help: ArgumentHelp(
            "The provider to sign in at, for a site that names several, or with --yes.", valueName: "url"))
    var issuer: String?

    /// The profile of `argument`: the one that is built in under this name, else that of a file, a URL or the sign-in
    /// `again`, and its source.
    func read(
        _ argument: String, _ again: ListedSignIn?, _ agent: UserAgentKind?, _ secret: ClientSecretOptions,
        with client: ProviderClient, _ port: UInt16?, _ confirmation: Confirmation
    ) async throws -> (SignInProfile, String) {
        let place = again?.source ?? argument
        guard let provider = NamedProvider(rawValue: place) else {
            let site = SiteSignIn(
                client: client, issuer: issuer, clientID: clientID, port: port, confirmation: confirmation)
            // The profile of a site was made here, and its client is registered.
            if issuer == nil, clientID == nil, let text = again?.profileText, SiteProfile.isOne(text, from: place) {
                return (try SignInProfile.parsed(Array(text.utf8), from: place), place)
            }
            if let profile = try await site.profile(at: place) { return (profile, place) }
            guard clientID == nil, tenant == nil else {
                let option = clientID == nil ? "--tenant" : "--client-id"
                throw CountersignError(
                    .configuration, "\(option) is for the profiles that are built in, and \(place) is none",
                    hint: "they are \(Self.names)")
            }
            return try await SignInProfile.read(place, with: client)
        }
        if tenant != nil, !provider.hasTenants {
            throw CountersignError(
                .configuration, "--tenant is for azure-devops and entra; \(place) has no directories",
                hint: "leave --tenant out")
        }
        if clientID == nil, tenant == nil, let text = again?.profileText {
            return (try SignInProfile.parsed(Array(text.utf8), from: place), place)
        }
        guard let clientID else {
            throw CountersignError(
                .configuration, "the profile \(place) needs your own client at the provider, as --client-id",
                hint: "register one at \(provider.registration); ./\(place) would be a file")
        }
        let usesSecret =
            switch provider.clientSecret {
            case .none: secret.isGiven
            case .required: true
            case .optional: secret.isGiven
            case .exceptOnDevice: secret.isGiven || agent != .device
            }
        let text = try provider.document(client: clientID, tenant: tenant, usesClientSecret: usesSecret)
        return (try SignInProfile.parsed(Array(text.utf8), from: place), place)
    }

    static let names = NamedProvider.allCases.map(\.rawValue).joined(separator: ", ")
}

/// `--redirect-port` and `--no-browser`.
struct RedirectOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Wait for the browser's return on this port, for providers that compare the redirect URI with its port. "
                + "(default: the profile's, else a free one)", valueName: "port"))
    var redirectPort: UInt16?

    @Flag(help: "Open no browser: print the page's address, and take the address to which a browser elsewhere is sent.")
    var noBrowser = false

    func validate() throws {
        guard redirectPort != 0 else { throw ValidationError("--redirect-port must be 1 to 65535") }
    }

    /// The profile with the chosen port. Throws if the options do not fit to the user agent.
    func applied(to profile: SignInProfile, _ kind: UserAgentKind) throws -> SignInProfile {
        let option = noBrowser ? "--no-browser" : redirectPort == nil ? nil : "--redirect-port"
        guard let option else { return profile }
        guard profile.grant == nil, !profile.usesBroker else {
            throw CountersignError(
                .configuration, "\(option) is for sign-ins with a browser, and this profile opens none",
                hint: "leave \(option) out")
        }
        guard kind != .device, !noBrowser || kind != .embedded else {
            throw CountersignError(
                .configuration, "\(option) is for user agents that open a browser, and \(kind.rawValue) opens none",
                hint: "leave \(option) out, or use --user-agent system")
        }
        return try redirectPort.map { try profile.redirecting(toPort: $0) } ?? profile
    }

    /// The user agent of the flow: `usual`, unless no browser is to be opened here.
    func agent(_ usual: SignInFlow.Agent) -> SignInFlow.Agent {
        noBrowser ? .browser(NoBrowser(readsAddress: Confirmation.hasTerminal)) : usual
    }
}
