// SPDX-License-Identifier: Apache-2.0

/// The schemes that a build answers, strongest first (RFC 7616 §5.6).
package final class AuthenticatorTable: Sendable {
    package let authenticators: [any Authenticator]

    package init(_ strongestFirst: [any Authenticator]) {
        authenticators = strongestFirst
    }

    /// The challenges that are implemented and that `permitted` allows, strongest first. Several realms of one scheme
    /// stay in the server's order; only the first challenge without a realm is used.
    package func offers(in challenges: [Challenge], permitted: [AuthenticationScheme]) -> [Offer] {
        var offers: [Offer] = []
        for authenticator in authenticators where permitted.contains(authenticator.scheme) {
            var hasOfferWithoutRealm = false
            for challenge in challenges where challenge.isOf(authenticator.schemeName) {
                guard authenticator.canAnswer(challenge) else { continue }
                let isWithoutRealm = authenticator.realm(of: challenge) == nil
                if isWithoutRealm, hasOfferWithoutRealm { continue }
                hasOfferWithoutRealm = hasOfferWithoutRealm || isWithoutRealm
                offers.append(Offer(authenticator, challenge))
            }
        }
        return offers
    }

    /// The strongest of them, for a comparison with the schemes that the server has accepted before.
    package func offered(in challenges: [Challenge], permitted: [AuthenticationScheme]) -> OfferedSchemes? {
        offers(in: challenges, permitted: permitted).first.map {
            OfferedSchemes(strongest: $0.authenticator.scheme, permitted: permitted)
        }
    }

    /// Whether `one` comes after `other`.
    func isWeaker(_ one: any Authenticator, than other: any Authenticator) -> Bool {
        let stronger = authenticators.first { $0 === one || $0 === other }
        return one !== other && stronger === other
    }

    /// Whether the table has an authenticator that can answer `challenge`.
    func canAnswer(_ challenge: Challenge) -> Bool {
        authenticators.contains { challenge.isOf($0.schemeName) && $0.canAnswer(challenge) }
    }

    /// The schemes of those that can answer one of `challenges`, strongest first, without duplicates.
    func schemes(answering challenges: [Challenge]) -> [AuthenticationScheme] {
        var schemes: [AuthenticationScheme] = []
        for authenticator in authenticators where !schemes.contains(authenticator.scheme) {
            let isOffered = challenges.contains { $0.isOf(authenticator.schemeName) && authenticator.canAnswer($0) }
            if isOffered { schemes.append(authenticator.scheme) }
        }
        return schemes
    }

    /// Why `challenge`, whose scheme is known, cannot be answered; nil if it can be, or if nothing is known.
    func shortcoming(of challenge: Challenge) -> String? {
        guard !canAnswer(challenge) else { return nil }
        return authenticators.lazy.filter { challenge.isOf($0.schemeName) }
            .compactMap { $0.shortcoming(of: challenge) }.first
    }

    /// The keywords of the allowed-sites list that permit a scheme of the table, strongest first, without duplicates.
    package var schemes: [AuthenticationScheme] {
        var schemes: [AuthenticationScheme] = []
        for authenticator in authenticators where !schemes.contains(authenticator.scheme) {
            schemes.append(authenticator.scheme)
        }
        return schemes
    }

    /// The authenticators that the keyword `scheme` permits.
    package func authenticators(of scheme: AuthenticationScheme) -> [any Authenticator] {
        authenticators.filter { $0.scheme == scheme }
    }

    /// Why no authenticator that the keyword `scheme` permits can carry the credential; nil if one can.
    package func obstacle(
        to credential: EnrolledCredential, of scheme: AuthenticationScheme, _ context: RequestContext
    ) -> String? {
        let authenticators = authenticators(of: scheme)
        let obstacles = authenticators.compactMap { $0.obstacle(to: credential, context) }
        return obstacles.count < authenticators.count ? nil : obstacles.last
    }

    /// Whether a scheme of this name may authenticate a connection.
    package func bindsConnection(schemeNamed name: some StringProtocol) -> Bool {
        authenticators.contains { $0.bindsConnection && $0.schemeName.lowercased() == name.lowercased() }
    }

    /// Whether a challenge field offers a scheme that may authenticate a connection. A client that answers such a
    /// challenge itself needs a connection of its own. In a field with a fault, any word may be the scheme for a client
    /// that reads it in another way.
    package func offersConnectionBoundScheme(in fields: [ChallengeField]) -> Bool {
        fields.contains { field in
            let reading = ChallengeParser.read(field)
            guard reading.fault != nil else {
                return reading.challenges.contains { bindsConnection(schemeNamed: $0.scheme) }
            }
            let words = field.octets.split { $0 <= 0x20 || ",;\"=".utf8.contains($0) }
            return words.contains { bindsConnection(schemeNamed: String(decoding: $0, as: UTF8.self)) }
        }
    }
}
