// SPDX-License-Identifier: Apache-2.0

import Foundation
import CountersignTestOrigin
import Testing

@testable import CountersignCertificates

/// Lists of `openssl ca -gencrl`.
struct RevocationListTests {
    private let now = TestPKI.now
    private let from = "20251201000000Z"
    private let until = "20260201000000Z"
    private let authority: OpenSSLAuthority

    /// A root, an intermediate below it, and leaves of the intermediate, one of them revoked.
    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make("middle", of: "root", OpenSSLAuthority.authority)
        try authority.make("good", of: "middle", OpenSSLAuthority.server)
        try authority.make("bad", of: "middle", OpenSSLAuthority.server)
        try authority.revoke("bad", of: "middle")
    }

    private func list(of issuer: String, from: String? = nil, until: String? = nil) throws -> [UInt8] {
        try authority.makeList("\(issuer).crl", of: issuer, from: from ?? self.from, until: until ?? self.until)
    }

    private func judge(_ name: String, _ lists: [UInt8]..., trusting anchor: String = "root") throws -> ServerTrust {
        let chain = try [name, "middle"].flatMap { try Certificate.readPEM(authority.bytes("\($0).pem")) }
        let anchors = try TrustAnchors(
            system: false, additional: Certificate.readPEM(authority.bytes("\(anchor).pem")))
        let verifier = ChainVerifier(anchors: anchors, revocationLists: try lists.flatMap(RevocationList.read))
        return verifier.evaluate(chain: chain, host: "localhost", at: now)
    }

    /// `fault`, after the text about the missing response.
    private func unknown(_ fault: String) -> ServerTrust.Revocation { .unknown("no stapled OCSP response, \(fault)") }

    /// A list from the network must not make OpenSSL ask the terminal.
    @Test func aListThatSaysItIsEncryptedIsRefused() {
        let text = """
            -----BEGIN X509 CRL-----
            Proc-Type: 4,ENCRYPTED
            DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF

            AAAAAAAAAAAAAAAAAAAAAA==
            -----END X509 CRL-----

            """
        #expect(throws: CertificateError(.malformed, "")) { try RevocationList.read(Array(text.utf8)) }
    }

    // MARK: Verdicts

    @Test func aListTellsWhoIsRevoked() throws {
        let lists = try list(of: "middle")
        let good = try judge("good", lists)
        #expect(good.isTrusted && good.revocation == .good(by: .revocationList))
        let bad = try judge("bad", lists)
        #expect(bad.reasons == [.revoked] && bad.revocation == .revoked(by: .revocationList))
        #expect(try judge("bad").revocation == unknown("no revocation list"))
    }

    @Test func anIssuersRevocationIsTheLeafsToo() throws {
        try authority.revoke("middle", of: "root")
        let roots = try list(of: "root")
        for lists in [[roots], [roots, try list(of: "middle")]] {
            let trust = try judge("good", lists.flatMap(\.self))
            #expect(trust.reasons == [.revoked] && trust.revocation == .revoked(by: .revocationList))
        }
    }

    @Test func withoutTheIssuersListRevocationIsUnknown() throws {
        let trust = try judge("bad", list(of: "root"))
        #expect(trust.isTrusted && trust.revocation == unknown("no revocation list of the issuer"))
    }

    @Test func aListOutsideItsDatesDoesNotProveAGoodStatus() throws {
        let expired = try judge("good", list(of: "middle", until: "20251231235959Z"))
        #expect(expired.isTrusted && expired.revocation == unknown("revocation list expired 2025-12-31"))
        let early = try judge("good", list(of: "middle", from: "20260101000001Z"))
        #expect(early.isTrusted && early.revocation == unknown("revocation list not valid before 2026-01-01"))
    }

    @Test func whatAnExpiredListRevokedStaysRevoked() throws {
        let trust = try judge("bad", list(of: "middle", until: "20251231235959Z"))
        #expect(trust.reasons == [.revoked] && trust.revocation == .revoked(by: .revocationList))
    }

    @Test func theNewerOfTwoListsCounts() throws {
        let lists = try list(of: "middle", until: "20251215000000Z") + list(of: "middle")
        #expect(try judge("good", lists).revocation == .good(by: .revocationList))
    }

    /// A list of changes says nothing about the certificates that it leaves out.
    @Test func aDeltaListIsIgnored() throws {
        let complete = try list(of: "middle")
        let configuration = authority.path("middle.cnf")
        let text = TextFile.text(configuration) + "2.5.29.27=DER:020101\n"
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        let delta = try list(of: "middle")
        for name in ["good", "bad"] { #expect(try judge(name, delta).revocation == unknown("no revocation list")) }
        #expect(try judge("bad", delta + complete).revocation == .revoked(by: .revocationList))
        #expect(try judge("good", delta + complete).revocation == .good(by: .revocationList))
    }

    @Test func aListOfAnotherSignerRevokesNobody() throws {
        let pem = try list(of: "middle")
        var der = try der(ofList: pem)
        der[der.count - 1] ^= 1
        for name in ["good", "bad"] {
            let trust = try judge(name, der)
            #expect(trust.isTrusted)
            #expect(trust.revocation == unknown("revocation list not usable: CRL signature failure"))
        }
    }

    @Test func anIssuerThatMayNotSignListsRevokesNobody() throws {
        let usage = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"]
        try authority.make("silent", of: "silent", usage)
        try authority.make("leaf", of: "silent", OpenSSLAuthority.server)
        try authority.revoke("leaf", of: "silent")
        let trust = try judge("leaf", list(of: "silent"), trusting: "silent")
        #expect(trust.isTrusted)
        #expect(trust.revocation == unknown("revocation list not usable: key usage does not include CRL signing"))
    }

    @Test func nothingIsKnownBelowAnUnknownRoot() throws {
        try authority.make("elsewhere", of: "elsewhere", OpenSSLAuthority.authority)
        let trust = try judge("good", list(of: "middle"), trusting: "elsewhere")
        #expect(trust.reasons == [.unknownIssuer])
        #expect(trust.revocation == .unknown("certificate issuer not trusted"))
    }

    @Test func aVerdictHoldsUntilADateIsPassed() throws {
        let lists = try RevocationList.read(list(of: "middle"))
        let chain = try ["good", "middle"].flatMap { try Certificate.readPEM(authority.bytes("\($0).pem")) }
        let anchors = try TrustAnchors(system: false, additional: Certificate.readPEM(authority.bytes("root.pem")))
        func holds(_ lists: [RevocationList], at time: Int64) -> Int64 {
            ChainVerifier(anchors: anchors, revocationLists: lists)
                .appraise(chain: chain, host: "localhost", at: time, staple: .absent).holdsUntil
        }
        #expect(holds([], at: 0) == 1_704_067_199, "2024-01-01, less a second")
        #expect(holds([], at: now) == 2_335_219_200, "the first second of 2044")
        #expect(holds(lists, at: now) == 1_769_903_999, "2026-02-01, less a second")
        #expect(holds([], at: 2_335_219_201) == .max)
        let early = try RevocationList.read(list(of: "middle", from: "20260102000000Z"))
        #expect(holds(early, at: now) == 1_767_311_999, "2026-01-02, less a second")
    }

    // MARK: Reading

    /// The only list of the PEM text in DER, as converted by openssl.
    private func der(ofList pem: [UInt8]) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        let path = try folder.write("list.pem", String(decoding: pem, as: UTF8.self))
        try openssl("crl", "-in", path, "-outform", "DER", "-out", folder.path("list.der"))
        return try folder.bytes("list.der")
    }

    @Test func listsAreReadInEitherForm() throws {
        let pem = try list(of: "middle")
        let other = authority.bytes("good.pem")
        let der = try der(ofList: pem)
        #expect(try RevocationList.read(der).map(\.nextUpdate) == [1_769_904_000])
        #expect(try RevocationList.read(pem).map(\.thisUpdate) == [1_764_547_200])
        #expect(try RevocationList.read(Array("said before\n".utf8) + pem + other + pem).count == 2)
    }

    @Test func anythingButAListIsMalformed() throws {
        let pem = try list(of: "middle")
        let der = try der(ofList: pem)
        let cut = Array(pem.prefix(pem.count - 40))
        let others: [[UInt8]] = [[], [0x30], Array("no list\n".utf8), authority.bytes("good.pem")]
        for bytes in others + [Array(der.dropLast()), der + [0], cut, pem + cut] {
            #expect(code { _ = try RevocationList.read(bytes) } == .malformed, "\(bytes.count) bytes")
        }
    }
}

// MARK: Identities

extension RevocationListTests {
    private func identity(_ name: String) throws -> Identity {
        let chain = try [name, "middle"].flatMap { try Certificate.readPEM(authority.bytes("\($0).pem")) }
        let (_, key) = try IdentityFile.read(
            authority.bytes("\(name).key.pem") + authority.bytes("\(name).pem"), password: nil)
        return try Identity(name: name, chain: chain, key: key)
    }

    private func isRevoked(_ name: String, by lists: [UInt8]..., knowing issuers: [Certificate] = []) throws -> Bool {
        try identity(name).checked(against: lists.flatMap(RevocationList.read), issuers: issuers).isRevoked
    }

    @Test func aRevokedIdentityIsNotChosen() throws {
        let lists = try list(of: "middle")
        #expect(try isRevoked("bad", by: lists))
        #expect(try !isRevoked("good", by: lists))
        #expect(try !isRevoked("bad"))
        let bad = try identity("bad").checked(against: RevocationList.read(lists), issuers: [])
        #expect(bad.obstacle(acceptableIssuers: [], at: now) == .revoked)
        #expect(
            Identity.choose(among: [bad], acceptableIssuers: [], at: now, preferring: "bad")
                == .none("identity \"bad\": revoked"))
        #expect(bad != (try identity("bad")))
    }

    @Test func anOutdatedListStillRevokesAnIdentity() throws {
        #expect(try isRevoked("bad", by: list(of: "middle", until: "20251202000000Z")))
    }

    @Test func anIssuersRevocationRevokesItsIdentities() throws {
        try authority.revoke("middle", of: "root")
        let lists = try list(of: "root")
        #expect(try isRevoked("good", by: lists))
        #expect(try isRevoked("good", by: lists, knowing: Certificate.readPEM(authority.bytes("root.pem"))))
    }

    /// The list has the issuer's name and the serial number, but another key has signed it.
    @Test func aForgedListRevokesNoIdentity() throws {
        let lists = try list(of: "middle")
        // The middle certificate's key differs from that of a certificate with the same name.
        let impostor = try OpenSSLAuthority()
        try impostor.make("root", of: "root", OpenSSLAuthority.authority)
        try impostor.make("middle", of: "root", OpenSSLAuthority.authority)
        let chain = try [authority.bytes("bad.pem"), impostor.bytes("middle.pem")].flatMap(Certificate.readPEM)
        let (_, key) = try IdentityFile.read(
            authority.bytes("bad.key.pem") + authority.bytes("bad.pem"), password: nil)
        let identity = try Identity(name: "bad", chain: chain, key: key)
        #expect(try !identity.checked(against: RevocationList.read(lists), issuers: []).isRevoked)
    }
}
