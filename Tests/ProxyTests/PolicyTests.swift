// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignSitePolicy
import CountersignTLS
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

@Suite struct PolicyTests {
    private static let origin = Origin(scheme: .https, host: "a.example", port: 443)
    private static let short = TrustException(leaf: [1], until: 100, answers: true)
    private static let long = TrustException(leaf: [2], until: nil, answers: false)

    private static func policy() throws -> Policy {
        Policy(
            sites: try SiteList(files: []), enrolled: .closed(reason: "test"),
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 0 }),
            interceptionAuthority: nil, trustExceptions: [origin: [short, long]], generation: 1)
    }

    @Test func aTrustExceptionIsForOneOriginAndLeaf() throws {
        let policy = try Self.policy()
        #expect(policy.trustException(for: Self.origin, leaf: [1], now: 0) == Self.short)
        #expect(policy.trustException(for: Self.origin, leaf: [2], now: 0) == Self.long)
        #expect(policy.trustException(for: Self.origin, leaf: [3], now: 0) == nil)
        for other in [
            Origin(scheme: .https, host: "a.example", port: 444), Origin(scheme: .http, host: "a.example", port: 443),
            Origin(scheme: .https, host: "b.a.example", port: 443), Origin(scheme: .https, host: "example", port: 443),
        ] {
            #expect(policy.trustException(for: other, leaf: [1], now: 0) == nil)
            #expect(policy.trustExceptions(for: other, now: 0).isEmpty)
        }
    }

    @Test func aTrustExceptionCountsThroughItsLastSecond() throws {
        let policy = try Self.policy()
        #expect(policy.trustException(for: Self.origin, leaf: [1], now: 100) != nil)
        #expect(policy.trustException(for: Self.origin, leaf: [1], now: 101) == nil)
        #expect(policy.trustExceptions(for: Self.origin, now: 101) == [Self.long])
    }

    // MARK: Credentials

    private static let password = PasswordCredential(
        name: "enrollment", user: "jdoe", password: Secret(utf8: "p"), generation: 1)
    private static let token = TokenCredential(name: "api", token: Secret(utf8: "t"), generation: 2)

    /// The name of the credential that answers a challenge of `scheme`, or the reason for its absence.
    private static func chosen(
        _ line: String, for scheme: AuthenticationScheme, realm: String? = nil,
        passwords: [PasswordCredential] = [password], tokens: [TokenCredential] = [token],
        rejected: Set<String> = []
    ) throws -> String {
        let policy = Policy(
            sites: try SiteList(files: [("t.sites", "https://a.example \(line)")]),
            enrolled: .open(
                credentials: Dictionary(uniqueKeysWithValues: passwords.map { ($0.name, $0) }),
                tokens: Dictionary(uniqueKeysWithValues: tokens.map { ($0.name, $0) }), identities: []),
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 0 }),
            interceptionAuthority: nil, generation: 1)
        guard case .answer(let rule) = policy.sites.verdict(for: origin) else { return "not listed" }
        let space = AuthenticationSpace(origin: origin, realm: realm, scheme: scheme)
        let decision = policy.credentialDecision(for: rule, in: space) { rejected.contains($0.name) }
        if rejected.isEmpty, realm == nil {
            #expect(policy.credentialDecision(for: rule, at: origin, scheme: scheme) == decision)
        }
        switch decision {
        case .useCredential(let credential): return credential.reference?.name ?? "nameless"
        case .performDefaultHandling(let reason): return "handed back: \(reason)"
        case .rejectProtectionSpace(let reason): return reason.text
        }
    }

    @Test func theSchemeSaysWhichKindTheNameMustStandFor() throws {
        #expect(try Self.chosen("", for: .basic) == "enrollment")
        #expect(
            try Self.chosen("", for: .bearer)
                == "credential \"enrollment\" is a user name and password, not a token")
        #expect(try Self.chosen("credential=api", for: .bearer) == "api")
        for scheme in [AuthenticationScheme.ntlm, .digest, .basic] {
            #expect(
                try Self.chosen("credential=api", for: scheme)
                    == "credential \"api\" is a token, not a user name and password")
        }
        #expect(try Self.chosen("credential=none", for: .bearer) == "no credential \"none\" is enrolled")
        let token = TokenCredential(name: "enrollment", token: Secret(utf8: "t"), generation: 2)
        #expect(try Self.chosen("", for: .bearer, passwords: [], tokens: [token]) == "enrollment")
    }

    /// As for passwords: one that is stored for the site alone comes first.
    @Test func aTokenStoredForTheSiteIsUsedForBearerOnly() throws {
        let own = OriginCredentialName(Self.origin).text
        let stored = TokenCredential(name: own, token: Secret(utf8: "o"), generation: 3)
        let ofRealm = TokenCredential(
            name: OriginCredentialName(Self.origin, realm: "r").text, token: Secret(utf8: "r"), generation: 4)
        #expect(try Self.chosen("", for: .bearer, tokens: [stored]) == own)
        #expect(try Self.chosen("", for: .basic, tokens: [stored]) == "enrollment")
        #expect(try Self.chosen("", for: .bearer, realm: "r", tokens: [stored, ofRealm]) == ofRealm.name)
        #expect(
            try Self.chosen("", for: .bearer, realm: "r", tokens: [stored, ofRealm], rejected: [ofRealm.name]) == own)
        #expect(
            try Self.chosen("credential=api", for: .bearer, tokens: [stored, Self.token], rejected: [own]) == "api")
        // A rejected one is not replaced by a credential of another kind: the breaker refuses it.
        #expect(try Self.chosen("", for: .bearer, tokens: [stored], rejected: [own]) == own)
    }
}
