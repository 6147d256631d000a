// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import CountersignOAuth
import CountersignSignIn

/// `enroll https://api.example/` for a site that challenges for a token: the site's metadata names the provider, which
/// the person confirms by its name, and the provider registers a client.
struct SiteSignIn {
    let client: ProviderClient
    /// `--issuer`.
    let issuer: String?
    /// `--client-id`.
    let clientID: String?
    /// `--redirect-port`.
    let port: UInt16?
    let confirmation: Confirmation

    /// Below those from which systems take ports of their own.
    private static let ports: ClosedRange<UInt16> = 20_000...32_000

    /// The profile for a site; nil if `place` is not the https URL of one that challenges for a token.
    func profile(at place: String) async throws -> SignInProfile? {
        guard place.hasPrefix("https://"), let url = try? EndpointURL(place, "the site's address"),
            let challenge = try await client.challenge(at: url)
        else { return nil }
        let resource = try await client.resourceMetadata(
            challenge.metadata, for: url.origin, url.target, issuer: nil)
        let site = SiteProfile(url, challenge, resource)
        let issuer = try chosen(of: resource.servers, for: url)
        let metadata = try await client.metadata(of: issuer)
        let scopes = site.scopes(at: metadata)
        let (identifier, redirect) = try await chosenClient(at: issuer, metadata, scopes)
        let document = site.document(issuer, client: identifier, redirect, scopes: scopes)
        return try SignInProfile.parsed(Array(document.utf8), from: place)
    }

    /// The client that the person names, or else one that is registered if the person agrees. If the identifier is the
    /// address of a metadata document, and the provider reads such documents, the redirect URI is that of the document.
    private func chosenClient(
        at issuer: Issuer, _ metadata: ProviderMetadata, _ scopes: [String]
    ) async throws -> (identifier: String, RedirectURI) {
        if let clientID, metadata.readsClientDocuments, ClientDocument.isOne(clientID) {
            return (clientID, try await client.clientDocument(clientID).redirect)
        }
        let redirect = try RedirectURI("http://127.0.0.1:\(port ?? .random(in: Self.ports))/")
        if let clientID { return (clientID, redirect) }
        let registration = ClientRegistration(name: "Countersign", redirect: redirect, scopes: scopes)
        // Before the question: whoever agrees must not read afterwards that it cannot be.
        _ = try registration.request(at: metadata)
        guard try confirmation.asks("Register this program as a client at \(issuer)?") else {
            throw CountersignError(
                .refused, "nothing was done",
                hint: "register a client yourself, with the redirect URI \(redirect.text), and pass --client-id")
        }
        return (try await client.register(registration, at: metadata), redirect)
    }

    /// The provider that the person wants. The site names it, and could name any.
    private func chosen(of servers: [String], for site: EndpointURL) throws -> Issuer {
        let names = servers.map(Console.printable).joined(separator: ", ")
        guard let first = servers.first else {
            throw CountersignError(
                .configuration, "the metadata of \(site.origin) names no provider that issues its tokens",
                hint: "ask those who run the site for a profile")
        }
        if let issuer {
            guard servers.contains(issuer) else {
                throw CountersignError(
                    .configuration, "\(site.origin) does not accept tokens of \(issuer)",
                    hint: "its metadata names \(names)")
            }
            return try Issuer(issuer)
        }
        guard servers.count == 1, !confirmation.isGiven else {
            throw CountersignError(
                .configuration, "\(site.origin) names \(names) as the provider, and could name any",
                hint: "if you trust it with your sign-in, pass --issuer \(Console.printable(first))")
        }
        let found = try Issuer(first)
        let question =
            "\(site.origin) accepts tokens of \(Console.printable(first)). Are you to sign in there, at "
            + "\(found.url.origin.host)?"
        guard try confirmation.asks(question) else { throw CountersignError(.refused, "nothing was done") }
        return found
    }
}
