// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Testing

@testable import CountersignChallenges

/// Challenges with mistakes: which are answered, in which space, and with what.
@Suite struct ToleratedChallengeTests {
    private static let table = AuthenticatorTable(
        DigestAuthenticator.strongestFirst + [BearerAuthenticator.shared, BasicAuthenticator.shared])

    /// Text, in which `{FC}` denotes an octet.
    private static func octets(_ text: String) -> [UInt8] {
        var octets: [UInt8] = []
        var rest = text[...]
        while let start = rest.firstIndex(of: "{") {
            octets += rest[..<start].utf8
            octets += Hex.decode(String(rest[start...].dropFirst().prefix(2))) ?? []
            rest = rest[start...].dropFirst(4)
        }
        return octets + rest.utf8
    }

    private static func challenges(_ fields: [String]) throws -> [Challenge] {
        try ChallengeParser.parse(fields: fields.map { ChallengeField(octets: octets($0)) })
    }

    /// The keyword of the scheme and the realm of each space, strongest first; `-` for none.
    @Test(arguments: [
        (["Basic"], ["basic -"]),
        (["Basic realm=wiki"], ["basic wiki"]),
        (["Basic realm=HP LaserJet"], ["basic HP LaserJet"]),
        (["Basic realm='Sandstorm API'"], ["basic 'Sandstorm API'"]),
        (["Basic realm=\"x"], ["basic x"]),
        (["Basic realm=\"x\"; charset=UTF-8"], ["basic x"]),
        (["Basic{09}realm=\"x\""], ["basic x"]),
        (["Basic, realm=\"x\""], ["basic x"]),
        (["Basic realm="], ["basic "]),
        (["Basic realm=, charset=\"UTF-8\""], ["basic "]),
        (["Basic realm=\"\""], ["basic "]),
        (["Basic realm=\"r{FC}\""], ["basic r\u{FC}"]),
        (["Basic realm=r{FC}"], ["basic r\u{FC}"]),
        (["Basic realm=\"r{C3}{BC}\""], ["basic r\u{FC}"]),
        (["Basic realm=\"ACME\\wiki\""], ["basic ACMEwiki"]),
        (["Basic realm=ACME\\wiki"], ["basic ACME\\wiki"]),
        (["Basic realm=\"C:\\data\\\""], ["basic C:\\data\\"]),
        (["Basic realm=\"x\", realm=\"x\""], ["basic x"]),
        (["Basic realm=\"x\", realm=\"y\""], []),
        (["Basic realm=\"x\", realm=\"y\", Basic realm=\"z\""], ["basic z"]),
        (["Basic realm=\"x\" oops, Basic realm=\"y\"", "Basic realm=\"z\""], ["basic x", "basic z"]),
        (["Bearer, error=\"invalid_token\"", "Basic realm=\"x\""], ["bearer -", "basic x"]),
        (["Bearer ,realm=\"x\""], ["bearer x"]),
        (
            ["Bearer realm=http://api.example/x, scope=a b", "Basic realm=r"],
            ["bearer http://api.example/x", "basic r"]
        ),
        (["Bearer realm=\"a\", error_description=\"The \"x\" is bad\"", "Basic realm=r"], ["bearer a", "basic r"]),
        (["Digest realm=\"x\" nonce=\"n\" qop=auth algorithm=MD5"], ["digest x"]),
        (["Digest realm=\"x\"; nonce=n; qop=\"auth\""], ["digest x"]),
        (["Digest realm=\"x\", nonce=abc==, qop=\"auth\""], ["digest x"]),
        (["Digest realm=\"x\", nonce=\"n\", qop=\"\""], ["digest x"]),
        (["Digest realm=\"r{FC}\", nonce=\"n\""], ["digest r\u{FC}"]),
        (["Digest realm=\"x\", nonce=\"n\", nonce=\"n\", qop=auth"], ["digest x"]),
        (["Digest realm=\"x\", nonce=\"n\", nonce=\"m\", qop=auth", "Basic realm=\"y\""], ["basic y"]),
        (["Digest nonce=\"n\", qop=auth", "Basic realm=\"y\""], ["basic y"]),
        (["Digest realm=\"x\", nonce=\"n\", algorithm=SHA-1, Digest realm=\"y\", nonce=\"n\""], ["digest y"]),
        (["Digest realm=\"x\", nonce=\"n\", qop=other", "Basic realm=\"y\""], ["basic y"]),
        // The missing part may name a stronger algorithm, or a protection.
        (["Digest realm=\"x\", nonce=\"n\", qop=auth, domain=\"\"/\"", "Basic realm=\"y\""], ["basic y"]),
        (["Digest realm=\"x\", nonce=\"n\", algorithm=MD5, domain=\"\"/\"", "Basic realm=\"y\""], ["basic y"]),
        (["Digest realm=\"x\", nonce=\"n\", algorithm=MD5, qop=auth, domain=\"\"/\""], ["digest x"]),
        (["Digest algorithm=MD5, nonce=\"n\", realm=\"x, qop=auth", "Basic realm=\"y\""], ["basic y"]),
    ])
    func whatCanBeReadIsAnsweredInItsSpace(fields: [String], spaces: [String]) throws {
        let origin = Origin(scheme: .https, host: "wiki.corp.example", port: 443)
        let challenges = (try? Self.challenges(fields)) ?? []
        let offers = Self.table.offers(in: challenges, permitted: AuthenticationScheme.allCases)
        #expect(
            offers.map { $0.space(at: origin) }.map { "\($0.scheme.rawValue) \($0.realm ?? "-")" } == spaces)
    }

    /// The answers of curl 7.88.1 to these challenges, for GET / with alice and wonderland.
    @Test(arguments: [
        (
            "Digest realm=\"r{FC}\", nonce=\"n\", qop=\"auth\"", "r{FC}",
            "ZTA3MmU1NzljODI2NGNlMjQ4MTcwYmZiMjNhMTVkNDQ=", "aada28b62cf77566165f4d316c385e56"
        ),
        (
            "Digest realm=\"a\\b\", nonce=\"n\", qop=\"auth\"", "ab", "NGQ4ZGU4OTk4NjI3YzVlZGQ0YWQwZGFiYWUyYTUzMTU=",
            "bc9cb1dc2572107993334a5995def102"
        ),
        (
            "Digest realm=\"r\" nonce=\"n\" qop=\"auth\"", "r", "ZGYxNTYzYmRhNzMxNjNhODEyMTllZThhMWQxODE1MWY=",
            "91f01db7d317afa74798022668481605"
        ),
        (
            "Digest realm=\"r\", nonce=abc==, qop=\"auth\"", "r", "YjEzNGMwZTRlZTM5MTYwMmE4N2FkNzYwNTc0NGU4MWE=",
            "9ffb7c87ab5c5bfbd1e3107cfcd41763"
        ),
        (
            "Digest realm=\"r\", nonce=\"n\", qop=\"auth", "r", "MjAzYWE4MzdiMTIxZTU0MWExYWI3NTg4ZjdjNWJjNDA=",
            "f3a048c496c213c15d0518c33ee8c202"
        ),
        (
            "Digest realm=HP Jet, nonce=\"n\", qop=\"auth\"", "HP Jet", "MGQ1NGM2Y2VjZWRkNDA1ZWE4MmY4OTEwY2MxZWE3YWE=",
            "994b2d18bed31806c9b1dfc89d04f7a0"
        ),
        (
            "Digest{09}realm=\"r\", nonce=\"n\", qop=\"auth\"", "r", "ZjgxNzEwZDk3NzIyNzM3N2U1YjlmMTIxNWE2NzdmYTE=",
            "24fc2c64d0c53009416869f2b67920d4"
        ),
        ("Digest realm='a b', nonce=\"n\", qop=\"\"", "'a b'", "", "97c00516f2e5ae7d69859e2166b7597c"),
        ("Digest realm=, nonce=\"n\"", "", "", "a8829236621037d809f8d3e8a4448925"),
    ])
    func digestsAreThoseOfCurl(field: String, realm: String, clientNonce: String, response: String) throws {
        let challenge = try #require(try Self.challenges([field]).first)
        let asked = try #require(DigestChallenge(challenge))
        let credential = PasswordCredential(
            name: "e", user: "alice", password: Secret(utf8: "wonderland"), generation: 1)
        let signer = DigestSigner(asked, try DigestSecret(of: credential, domain: nil, asked, .utf8))
        let request = SampleRequest(method: "GET", target: "/")
        let answer = try #require(signer.field(for: request, newClientNonce: Array(clientNonce.utf8)))
        #expect(answer.parsed?.octets("realm") == Self.octets(realm))
        #expect(answer.parameter("response") == response)
    }

    /// The server's proof is computed from the same octets.
    @Test func proofsCoverTheOctetsOfTheServer() throws {
        let challenge = try #require(
            try Self.challenges(["Digest realm=\"r\", nonce=\"{FC}\\\"\", qop=auth, opaque=\"{FE}\""]).first)
        let asked = try #require(DigestChallenge(challenge))
        let credential = PasswordCredential(name: "e", user: "u", password: Secret(utf8: "p"), generation: 1)
        let signer = DigestSigner(asked, try DigestSecret(of: credential, domain: nil, asked, .utf8))
        let sent = try #require(signer.field(for: SampleRequest(target: "/"), newClientNonce: Array("c".utf8)))
        #expect(sent.parsed?.octets("nonce") == [0xFC, UInt8(ascii: "\"")])
        #expect(sent.parsed?.octets("opaque") == [0xFE])
        let digest = Digest.md5
        let secret = Hex.digits(digest.hash(Array("u:r:p".utf8)))
        let target = Hex.digits(digest.hash(Array(":/".utf8)))
        let middle = [UInt8(ascii: ":"), 0xFC, UInt8(ascii: "\"")] + Array(":00000001:c:auth:".utf8)
        let proof = Hex.encode(digest.hash(secret + middle + target))
        #expect(signer.verifies(proof, of: sent))
        #expect(!signer.verifies(String(proof.reversed()), of: sent))
    }

    @Test func aCutPKeyAuthChallengeIsNotAnswered() throws {
        let whole = "PKeyAuth nonce=\"n\", Context=\"c\", Version=\"1.0\""
        for (field, isAnswered) in [(whole, true), (whole + " oops", false)] {
            let challenge = try #require(try Self.challenges([field]).first)
            #expect(PKeyAuthAuthenticator.shared.canAnswer(challenge) == isAnswered)
        }
    }

    /// It would be used for the next request.
    @Test(arguments: [("", "next"), (" oops", "n"), (", nextnonce=\"other\"", "n")])
    func theNextNonceOfAFieldWithAFaultIsNotUsed(more: String, nonce: String) throws {
        let challenge = try #require(try Self.challenges(["Digest realm=r, nonce=n, qop=auth"]).first)
        let asked = try #require(DigestChallenge(challenge))
        let credential = PasswordCredential(name: "e", user: "u", password: Secret(utf8: "p"), generation: 1)
        let signer = DigestSigner(asked, try DigestSecret(of: credential, domain: nil, asked, .utf8))
        func field() -> AuthorizationField? {
            signer.field(for: SampleRequest(target: "/"), newClientNonce: Array("c".utf8))
        }
        let response = AcceptingResponse(
            challenge: challenge, answer: .perRequest(signer), sent: field(), challengeFields: [],
            informationFields: ["nextnonce=\"next\"\(more)"], source: .origin)
        _ = DigestAuthenticator(.md5).acceptance(response)
        #expect(field()?.parameter("nonce") == nonce)
    }

    @Test func aBrokenLineDoesNotKeepATokenFromBeingRead() {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .token([1]), .expect(.sendOpening(.opening)),
            .response(401, "NTLM Ag==", "Basic a b", "\""), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
        ])
    }

    /// Clients may read more of a field with a fault, and answer NTLM in it.
    @Test(arguments: [
        ("Basic realm=\"x\" oops, FakeNTLM", false), ("Basic realm=\"x\" oops, ntlm", true),
        ("\"x\";NTLM=", true), ("NTLM@", false),
    ])
    func anyWordOfAFieldWithAFaultMayBeAScheme(field: String, isOffered: Bool) {
        #expect(AuthenticatorTable.ofTests.offersConnectionBoundScheme(in: [ChallengeField(field)]) == isOffered)
    }
}
