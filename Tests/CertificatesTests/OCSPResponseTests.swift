// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

@testable import CountersignCertificates

/// Responses from `openssl ocsp`, which uses the system time.
struct OCSPResponseTests {
    private let authority: OpenSSLAuthority

    /// A root, an intermediate below it with a responder of its own, and leaves of the intermediate.
    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make("middle", of: "root", OpenSSLAuthority.authority)
        try authority.make("responder", of: "middle", OpenSSLAuthority.responder)
        try authority.make("leaf", of: "middle", OpenSSLAuthority.server)
    }

    private func response(
        _ leaf: String = "leaf", of issuer: String = "middle", signedBy signer: String = "responder",
        identifiedBy hash: String = "sha1", flags: [String] = ["-ndays", "1"]
    ) throws -> [UInt8] {
        try authority.makeResponse(
            "response.der", about: leaf, of: issuer, signedBy: signer, identifiedBy: hash, flags: flags)
    }

    private func appraise(
        _ staple: ChainVerifier.Staple, of name: String = "leaf", at time: Int64 = TestPKI.today,
        lists: [RevocationList] = []
    ) throws -> ChainVerifier.Appraisal {
        let chain = try [name, "middle"].flatMap { try Certificate.readPEM(authority.bytes("\($0).pem")) }
        let anchors = try TrustAnchors(system: false, additional: Certificate.readPEM(authority.bytes("root.pem")))
        return ChainVerifier(anchors: anchors, revocationLists: lists)
            .appraise(chain: chain, host: "localhost", at: time, staple: staple)
    }

    private func judge(
        _ response: [UInt8], of name: String = "leaf", at time: Int64 = TestPKI.today
    ) throws -> ServerTrust {
        try appraise(.received(response), of: name, at: time).trust
    }

    private func unknown(_ fault: String) -> ServerTrust.Revocation {
        .unknown("stapled OCSP response not valid: \(fault), no revocation list")
    }

    private static let notSigned = "not signed by the issuer or a responder that it has authorised"

    @Test(
        arguments: ["responder", "middle"],
        [
            ("sha1", ["-ndays", "1"]), ("sha1", ["-ndays", "1", "-resp_key_id"]),
            ("sha256", ["-nmin", "5", "-rmd", "sha384"]),
        ])
    func aResponseOfTheIssuerOrItsResponderCounts(signer: String, form: (hash: String, flags: [String])) throws {
        let (hash, flags) = form
        let good = try judge(response(signedBy: signer, identifiedBy: hash, flags: flags))
        #expect(good.isTrusted && good.revocation == .good(by: .stapledOCSP))
        try authority.revoke("leaf", of: "middle")
        let bad = try judge(response(signedBy: signer, identifiedBy: hash, flags: flags))
        #expect(bad.reasons == [.revoked] && bad.revocation == .revoked(by: .stapledOCSP))
    }

    /// The certificates in a response are chosen by the server, and OpenSSL builds chains from them.
    @Test func theCertificatesInAResponseAreLimited() throws {
        for name in ["one", "two", "three", "four"] { try authority.make(name, of: name, OpenSSLAuthority.authority) }
        func judged(with others: [String]) throws -> ServerTrust.Revocation {
            let folder = try TemporaryFolder()
            let file = try folder.write("others.pem", others.joined())
            return try judge(response(flags: ["-ndays", "1", "-rother", file])).revocation
        }
        let others = ["one", "two", "three", "four"].map { name in
            String(decoding: authority.bytes("\(name).pem"), as: UTF8.self)
        }
        #expect(try judged(with: Array(others.prefix(3))) == .good(by: .stapledOCSP))
        let fault = unknown("contains too many certificates, or one with an unusual key")
        #expect(try judged(with: others) == fault)
        let root = try #require(try Certificate.readPEM(authority.bytes("root.pem")).first)
        let hostile = try HostileChain(anchor: root, key: .rsa16384, layers: 1, width: 1).make()[1]
        #expect(try judged(with: [hostile.pem]) == fault)
    }

    @Test func theIssuerNeedNotSendItsCertificateAlong() throws {
        let trust = try judge(response(signedBy: "middle", flags: ["-ndays", "1", "-resp_no_certs"]))
        #expect(trust.revocation == .good(by: .stapledOCSP))
        let lost = try judge(response(signedBy: "responder", flags: ["-ndays", "1", "-resp_no_certs"]))
        #expect(lost.isTrusted && lost.revocation == unknown(Self.notSigned))
    }

    /// A response by anyone else has no effect, whether it says revoked or good.
    @Test(arguments: ["root", "leaf", "server", "rootResponder", "stranger", "expired"])
    func aResponseByAnotherSignerHasNoEffect(signer: String) throws {
        switch signer {
        case "server": try authority.make("server", of: "middle", OpenSSLAuthority.server)
        case "rootResponder": try authority.make("rootResponder", of: "root", OpenSSLAuthority.responder)
        case "stranger": try authority.make("stranger", of: "stranger", OpenSSLAuthority.responder)
        case "expired":
            try authority.make("expired", of: "middle", OpenSSLAuthority.responder, until: "20250101000000Z")
        default: break
        }
        for isRevoked in [false, true] {
            if isRevoked { try authority.revoke("leaf", of: "middle") }
            let trust = try judge(response(signedBy: signer))
            #expect(trust.isTrusted && trust.revocation == unknown(Self.notSigned))
        }
    }

    @Test func theRespondersDatesAreHeldAgainstTheTimeAskedFor() throws {
        try authority.make("brief", of: "middle", OpenSSLAuthority.responder, until: "20430101000000Z")
        try authority.revoke("leaf", of: "middle")
        let response = try response(signedBy: "brief", flags: [])
        let last: Int64 = 2_303_683_199
        #expect(try judge(response, at: last).revocation == .revoked(by: .stapledOCSP), "2043-01-01, less a second")
        #expect(try appraise(.received(response), at: last - 1000).holdsUntil == last)
        #expect(try judge(response, at: last + 1).revocation == unknown(Self.notSigned))
    }

    @Test func aWeakRespondersResponseHasNoEffect() throws {
        try authority.make(
            "weak", of: "middle", OpenSSLAuthority.responder, key: ["rsa:1024"])
        #expect(try judge(response(signedBy: "weak")).revocation == unknown(Self.notSigned))
    }

    @Test func aResponseSignedWithSHA1HasNoEffect() throws {
        try authority.revoke("leaf", of: "middle")
        let trust = try judge(response(flags: ["-ndays", "1", "-rmd", "sha1"]))
        #expect(trust.isTrusted && trust.revocation == unknown(Self.notSigned))
    }

    @Test func aResponseAboutAnotherCertificateHasNoEffect() throws {
        try authority.make("other", of: "middle", OpenSSLAuthority.server)
        try authority.revoke("other", of: "middle")
        #expect(try judge(response("other")).revocation == unknown("about another certificate"))
        try authority.make("second", of: "root", OpenSSLAuthority.authority)
        #expect(
            try judge(response(of: "second", signedBy: "second")).revocation == unknown("about another certificate"))
    }

    @Test func anUnknownStatusHasNoEffect() throws {
        try authority.make("second", of: "middle", OpenSSLAuthority.server)
        let database = authority.path("middle.index")
        let entries = TextFile.lines(database).filter { !$0.contains("CN=leaf") }
        try (entries.joined(separator: "\n") + "\n").write(toFile: database, atomically: true, encoding: .utf8)
        let trust = try judge(response())
        #expect(trust.isTrusted && trust.revocation == unknown("the responder does not know the certificate"))
    }

    @Test func anythingButAResponseHasNoEffect() throws {
        let good = try response()
        let tryLater: [UInt8] = [0x30, 0x03, 0x0A, 0x01, 0x03]
        for bytes in [[], [0x30], Array(good.dropLast()), good + [0]] {
            let trust = try judge(bytes)
            #expect(trust.isTrusted && trust.revocation == unknown("malformed"), "\(bytes.count)")
        }
        #expect(try judge(tryLater).revocation == unknown("the responder reports an error: tryLater"))
        let plain = try response(signedBy: "middle", flags: ["-ndays", "1", "-resp_no_certs"])
        var altered = plain
        altered[altered.count - 1] ^= 1
        #expect(try judge(altered).revocation == unknown(Self.notSigned))
    }

    @Test func aResponseCountsBetweenItsDatesAndFiveMinutes() throws {
        let before = TestPKI.today
        let response = try response(flags: ["-nmin", "60"])
        let made = before...TestPKI.today
        func revocation(_ time: Int64) throws -> ServerTrust.Revocation { try judge(response, at: time).revocation }
        let end = try appraise(.received(response)).holdsUntil
        #expect(made.contains(end - 3900), "an hour and five minutes")
        #expect(try revocation(end) == .good(by: .stapledOCSP))
        #expect(try revocation(end + 1) == unknown("expired"))
        let start = try appraise(.received(response), at: before - 1000).holdsUntil + 1
        #expect(made.contains(start + 300))
        #expect(try revocation(start) == .good(by: .stapledOCSP))
        #expect(try revocation(start - 1) == unknown("not yet valid"))
        try authority.revoke("leaf", of: "middle")
        let revoked = try judge(self.response(flags: ["-nmin", "60"]), at: end + 100)
        #expect(revoked.isTrusted && revoked.revocation == unknown("expired"))
    }

    @Test func withoutNextUpdateGoodHoldsForADayAndRevokedForEver() throws {
        let good = try response(flags: [])
        #expect(try judge(good, at: TestPKI.today + 86_300).revocation == .good(by: .stapledOCSP))
        #expect(try judge(good, at: TestPKI.today + 86_401).revocation == unknown("expired"))
        try authority.revoke("leaf", of: "middle")
        #expect(try judge(response(flags: []), at: TestPKI.today + 10_000_000).reasons == [.revoked])
    }

    @Test func aListRevokesDespiteAGoodResponse() throws {
        let good = try response()
        try authority.revoke("leaf", of: "middle")
        let list = try authority.makeList(
            "middle.crl", of: "middle", from: "20240101000000Z", until: "20440101000000Z")
        let trust = try appraise(.received(good), lists: RevocationList.read(list)).trust
        #expect(trust.reasons == [.revoked] && trust.revocation == .revoked(by: .revocationList))
    }

    // MARK: Must-staple

    @Test func aLeafThatRequiresAResponseIsNotTrustedWithoutOne() throws {
        let demand = ServerTrust.Reason.other(
            "certificate requires a stapled OCSP response, and none that is valid was sent")
        try authority.make("demanding", of: "middle", OpenSSLAuthority.server + [OpenSSLAuthority.mustStaple])
        #expect(try appraise(.absent, of: "demanding").trust.reasons == [demand])
        #expect(try appraise(.awaited, of: "demanding").trust.isTrusted)
        #expect(try judge(response("leaf"), of: "demanding").reasons == [demand])
        #expect(try judge(response("demanding"), of: "demanding", at: TestPKI.today + 100_000).reasons == [demand])
        #expect(try judge(response("demanding"), of: "demanding").isTrusted)
        try authority.revoke("demanding", of: "middle")
        #expect(try judge(response("demanding"), of: "demanding").reasons == [.revoked])
    }
}
