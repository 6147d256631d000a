// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignJSON
import Testing

@testable import CountersignChallenges

/// DPoP: RFC 9449, with its examples.
@Suite struct DPoPTests {
    /// The example of §4.1, whose key the RFC does not contain.
    private static let example = """
        eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJ\
        oRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.e\
        yJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0\
        IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg
        """

    private func key() throws -> ES256Key {
        try #require(ES256Key(scalar: Secret([UInt8](repeating: 7, count: 32))))
    }

    private func members(_ part: Substring) throws -> [String: JSONValue] {
        let value = try JSONParser.parse(try #require(Base64URL.decode(part)))
        guard case .object(let members) = value.content else { return [:] }
        return Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.value) })
    }

    /// Verifies the signature with the public key in the header, and returns the claims.
    private func claims(_ proof: String) throws -> [String: String] {
        let parts = proof.split(separator: ".")
        let header = try members(parts[0])
        let jwk = try #require(header["jwk"])
        func number(_ name: String) throws -> [UInt8] {
            guard case .string(let text)? = jwk[name]?.content else { return [] }
            return try #require(Base64URL.decode(text))
        }
        let key = try VerificationKey(.p256, x: try number("x"), y: try number("y"))
        let signed = Array(parts[0..<2].joined(separator: ".").utf8)
        #expect(key.verifies(try #require(Base64URL.decode(parts[2])), of: signed, .ecdsa(.sha256)))
        return try members(parts[1]).mapValues { value in
            if case .string(let text) = value.content { text } else { value.serialized }
        }
    }

    @Test func theExampleOfTheStandardVerifies() throws {
        let claims = try claims(Self.example)
        #expect(claims["htm"] == "POST" && claims["htu"] == "https://server.example.com/token")
    }

    /// §7.1 and §4.1, §6.1.
    @Test func theExamplesOfHashes() throws {
        let token = Secret(utf8: "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")
        #expect(DPoPProof.hash(of: token) == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")
    }

    @Test func aProofHasWhatTheStandardDemands() throws {
        let proof = DPoPProof(
            "GET", "https://api.example/a/b?q=1#f", token: Secret(utf8: "t1"), nonce: "n-1")
        let made = try #require(proof.signed(with: key(), at: 1_900_000_000, random: [UInt8](0..<16)))
        #expect(
            try claims(made) == [
                "jti": "AAECAwQFBgcICQoLDA0ODw", "htm": "GET", "htu": "https://api.example/a/b", "iat": "1900000000",
                "ath": DPoPProof.hash(of: Secret(utf8: "t1")), "nonce": "n-1",
            ])
        let header = try members(try #require(made.split(separator: ".").first))
        #expect(header["typ"]?.content == .string("dpop+jwt") && header["alg"]?.content == .string("ES256"))
        #expect(header["jwk"]?["d"] == nil && header.count == 3)
    }

    @Test func withoutTokenAndNonceTheirClaimsAreMissing() throws {
        let made = try #require(DPoPProof("POST", "https://id.example/token").signed(with: key(), at: 1, random: [1]))
        #expect(Set(try claims(made).keys) == ["jti", "htm", "htu", "iat"])
    }

    @Test(arguments: [0, 1, 31, 33]) func aKeyHasOneLength(count: Int) {
        #expect(ES256Key(scalar: Secret([UInt8](repeating: 1, count: count))) == nil)
    }

    @Test func numbersOutsideTheCurveAreNoKeys() {
        #expect(ES256Key(scalar: Secret([UInt8](repeating: 0, count: 32))) == nil)
        #expect(ES256Key(scalar: Secret([UInt8](repeating: 0xFF, count: 32))) == nil)
    }

    @Test func aBoundTokenIsNoBearerToken() throws {
        let bound = BoundToken(Secret(utf8: "t1"), try key())
        #expect(!TokenCredential.isToken(bound.encoded) && TokenCredential.isStorable(bound.encoded))
        #expect(BoundToken(decoding: bound.encoded) == bound)
        let credential = TokenCredential(name: "work", token: bound.encoded, generation: 1)
        #expect(credential.token.utf8Text == "t1" && credential.bound == bound && credential.stored == bound.encoded)
    }

    @Test(arguments: ["", "t1", "DPoP ", "DPoP t1", "DPoP AAAA t1", "dpop \(String(repeating: "B", count: 43)) t1"])
    func otherTextsAreNoBoundTokens(text: String) {
        #expect(BoundToken(decoding: Secret(utf8: text)) == nil)
    }

    // MARK: Nonces

    @Test func theLastNonceOfAnOriginCounts() {
        let nonces = DPoPNonces()
        let (one, other) = (
            Origin(scheme: .https, host: "a.example", port: 443), Origin(scheme: .https, host: "b.example", port: 443)
        )
        nonces.note("n1", of: one)
        nonces.note("n2", of: one)
        #expect(nonces.nonce(of: one) == "n2" && nonces.nonce(of: other) == nil)
        #expect(DPoPNonces.nonce(in: ["n3"]) == "n3")
        for faulty in [
            ["a\u{1}b"], ["a b"], ["\""], ["\\"], [""], ["ü"], ["n3", "n4"], [], [String(repeating: "n", count: 1025)],
        ] {
            #expect(DPoPNonces.nonce(in: faulty) == nil, "\(faulty)")
        }
    }

    @Test func theOldestOriginIsForgotten() {
        let nonces = DPoPNonces()
        let origins = (0...DPoPNonces.capacity).map { Origin(scheme: .https, host: "h\($0).example", port: 443) }
        for origin in origins { nonces.note("n", of: origin) }
        #expect(nonces.nonce(of: origins[0]) == nil && nonces.nonce(of: origins[1]) == "n")
    }

    // MARK: The authenticator

    private struct Request: RequestDescription {
        let method: String
        let target: String

        func readContent(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool { false }
    }

    private static let origin = Origin(scheme: .https, host: "a.example", port: 8443)

    private func signer() throws -> any RequestSigner {
        let credential = TokenCredential(
            name: "work", token: BoundToken(Secret(utf8: "t1"), try key()).encoded, generation: 1)
        let reply = try DPoPAuthenticator.shared.reply(
            to: Challenge(scheme: "DPoP"), with: .token(credential),
            RequestContext(
                origin: Self.origin, authenticators: AuthenticatorTable([DPoPAuthenticator.shared]), site: .listed,
                permitted: [.bearer], plaintextPermitted: false, clientAuthorizes: false, originTrusted: true,
                hasBody: false))
        guard case .answer(.perRequest(let signer)) = reply else { throw TestFailure() }
        return signer
    }

    private struct TestFailure: Error {}

    private func inputs(_ nonces: DPoPNonces, answering nonce: String? = nil) -> AnswerInputs {
        AnswerInputs(
            fileTime: 130_000_000_000_000_000, random: { [UInt8](repeating: 1, count: $0) }, nonces: nonces,
            nonceToAnswer: nonce)
    }

    private func claims(of target: String, _ inputs: AnswerInputs) throws -> [String: String] {
        let proof = try signer().field(for: Request(method: "OPTIONS", target: target), inputs)?.proof
        return try claims(try #require(proof?.utf8Text))
    }

    /// RFC 9110 §7.1, RFC 9112 §3.3: the asterisk is no part of the target URI.
    @Test(arguments: [
        ("*", "https://a.example:8443"), ("/", "https://a.example:8443/"), ("/*?*", "https://a.example:8443/*"),
    ])
    func theTargetURIIsThatOfTheRequest(target: String, address: String) throws {
        #expect(try claims(of: target, inputs(DPoPNonces()))["htu"] == address)
    }

    /// Another request may have used the last one of the origin, if each is for one use.
    @Test func theNonceOfTheResponseThatIsAnsweredComesFirst() throws {
        let nonces = DPoPNonces()
        #expect(try claims(of: "/", inputs(nonces))["nonce"] == nil)
        nonces.note("others", of: Self.origin)
        #expect(try claims(of: "/", inputs(nonces))["nonce"] == "others")
        #expect(try claims(of: "/", inputs(nonces, answering: "own"))["nonce"] == "own")
    }

    /// A server may ask for a nonce in reply to the proof, unless the proof has the one that it has just given.
    @Test func aProofWithoutTheNonceOfAResponseMayBeRefused() throws {
        let nonces = DPoPNonces()
        nonces.note("others", of: Self.origin)
        #expect(try signer().lacksInput(inputs(nonces)) && !signer().lacksInput(inputs(nonces, answering: "own")))
    }

    @Test func onlyAlgorithmsThatWeHaveAreAnswered() {
        func challenge(_ algorithms: String?) -> Challenge {
            Challenge(scheme: "DPoP", parameters: algorithms.map { [AuthParameter("algs", $0)] } ?? [])
        }
        #expect(DPoPAuthenticator.shared.canAnswer(challenge(nil)))
        #expect(DPoPAuthenticator.shared.canAnswer(challenge("PS256 ES256")))
        #expect(!DPoPAuthenticator.shared.canAnswer(challenge("PS256 es256")))
        #expect(!DPoPAuthenticator.shared.canAnswer(challenge("")))
    }
}
