// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

@testable import CountersignCertificates

/// The part of learned statuses in a verdict.
struct LearnedStatusTests {
    private static let now = TestPKI.now
    private let authority: OpenSSLAuthority
    private let responder = ServerTrust.RevocationSource.responder(url: "http://ocsp.example/")
    private let list = ServerTrust.RevocationSource.distributedList(url: "http://crl.example/")

    /// A root, an intermediate that names a list, and a leaf that names a responder.
    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make(
            "middle", of: "root", OpenSSLAuthority.authority + ["crlDistributionPoints=URI:http://crl.example/"])
        try authority.make(
            "leaf", of: "middle", OpenSSLAuthority.server + ["authorityInfoAccess=OCSP;URI:http://ocsp.example/"])
        try authority.make("silent", of: "middle", OpenSSLAuthority.server)
    }

    private func certificate(_ name: String) throws -> Certificate {
        try #require(try Certificate.readPEM(authority.bytes("\(name).pem")).first)
    }

    private func status(
        _ finding: CertificateStatus.Finding, _ source: ServerTrust.RevocationSource?,
        _ validity: ClosedRange<Int64> = now - 10...now + 10
    ) -> CertificateStatus {
        CertificateStatus(finding, from: source, validity: validity)
    }

    /// `known` are the statuses by the names of their certificates.
    private func appraise(
        _ leaf: String = "leaf", known: [String: CertificateStatus] = [:], areRequired: Bool = false,
        canBeLearned: Bool = true, isOwnAnchor: Bool = true, host: String = "localhost"
    ) throws -> ChainVerifier.Appraisal {
        let chain = try [certificate(leaf), certificate("middle")]
        let root = authority.path("root.pem")
        let anchors = try TrustAnchors(
            file: isOwnAnchor ? nil : root, folder: false,
            additional: isOwnAnchor ? [certificate("root")] : [])
        let statuses = try Dictionary(uniqueKeysWithValues: known.map { (try certificate($0.key), $0.value) })
        let middle = chain[1], anchor = try certificate("root")
        return ChainVerifier(anchors: anchors).appraise(
            chain: chain, host: host, at: Self.now, staple: .absent,
            statuses: KnownStatuses(areRequired: areRequired, canBeLearned: canBeLearned) { certificate, issuer in
                issuer == (certificate == middle ? anchor : middle) ? statuses[certificate] : nil
            })
    }

    private let revoked = RevocationEntry(date: 1_764_547_200, reason: .keyCompromise)

    @Test func anUnknownStatusIsAQuestionAboutEachCertificate() throws {
        let found = try appraise()
        #expect(found.trust.isTrusted)
        #expect(
            found.trust.revocation
                == .unknown("no stapled OCSP response, no revocation list, no answer yet from http://ocsp.example/"))
        #expect(try found.questions.map(\.certificate) == [certificate("leaf"), certificate("middle")])
        #expect(try found.questions.map(\.issuer) == [certificate("middle"), certificate("root")])
        #expect(found.questions.map(\.isOfLeaf) == [true, false])
        #expect(
            found.questions.map(\.points) == [
                [.responder(url: "http://ocsp.example/")], [.list(url: "http://crl.example/")],
            ])
        #expect(found.questions.map(\.isBelowOwnAnchor) == [true, true])
        #expect(try appraise(isOwnAnchor: false).questions.map(\.isBelowOwnAnchor) == [false, false])
    }

    @Test func withoutASourceOfStatusesThereAreNoQuestions() throws {
        let found = try appraise(canBeLearned: false)
        #expect(found.questions.isEmpty)
        #expect(found.trust.revocation == .unknown("no stapled OCSP response, no revocation list"))
    }

    @Test func anUntrustedChainAsksNothing() throws {
        let found = try appraise(host: "other.example")
        #expect(found.trust.reasons == [.hostMismatch] && found.questions.isEmpty)
    }

    @Test func aGoodStatusCountsUntilItsEnd() throws {
        let found = try appraise(known: ["leaf": status(.good, responder), "middle": status(.good, list)])
        #expect(found.trust.isTrusted && found.trust.revocation == .good(by: responder))
        #expect(found.questions.isEmpty && found.holdsUntil == Self.now + 10)
    }

    @Test(arguments: [-100 ... -1, 1...100] as [ClosedRange<Int64>])
    func aStatusOutsideItsValidityIsNotKnown(validity: ClosedRange<Int64>) throws {
        let shifted = validity.lowerBound + Self.now...validity.upperBound + Self.now
        let found = try appraise(known: ["leaf": status(.good, responder, shifted)])
        #expect(found.questions.first?.isOfLeaf == true)
        guard case .unknown = found.trust.revocation else { return #expect(Bool(false), "\(found.trust.revocation)") }
    }

    @Test func aRevokedLeafSaysWhoRevokedItWhenAndWhy() throws {
        let found = try appraise(known: ["leaf": status(.revoked(revoked), responder)])
        #expect(found.trust.reasons == [.revoked] && found.trust.revocation == .revoked(by: responder))
        #expect(found.trust.text == #"certificate revoked 2025-12-01 by "CN=middle" (key compromise)"#)
        #expect(found.questions.isEmpty)
    }

    @Test func aRevokedIssuerCountsToo() throws {
        let plain = RevocationEntry(date: 1_764_547_200, reason: nil)
        let found = try appraise(known: ["leaf": status(.good, responder), "middle": status(.revoked(plain), list)])
        #expect(found.trust.reasons == [.revoked] && found.trust.revocation == .revoked(by: list))
        #expect(found.trust.text == #"certificate of the issuer "CN=middle" revoked 2025-12-01 by "CN=root""#)
    }

    @Test func theStatusesOfAllCertificatesCanBeRequired() throws {
        let good = status(.good, responder)
        let unknown = status(.unknown("OCSP responder http://ocsp.example/ answered with the status 500"), nil)
        let nothing = try appraise(areRequired: true).trust
        #expect(nothing.reasons == [.revocationUnknown])
        let leaf = try appraise(known: ["leaf": unknown, "middle": good], areRequired: true)
        #expect(leaf.trust.reasons == [.revocationUnknown] && leaf.questions.isEmpty)
        #expect(
            leaf.trust.text == "revocation status unknown: no stapled OCSP response, no revocation list, "
                + "OCSP responder http://ocsp.example/ answered with the status 500")
        let issuer = try appraise(known: ["leaf": good, "middle": unknown], areRequired: true).trust
        #expect(issuer.reasons == [.revocationUnknown])
        #expect(issuer.text.contains(#"of the issuer "CN=middle": no revocation list, OCSP responder"#), "\(issuer)")
        #expect(try appraise(known: ["leaf": good, "middle": good], areRequired: true).trust.isTrusted)
        #expect(try appraise(known: ["leaf": good, "middle": unknown]).trust.revocation == .good(by: responder))
    }

    @Test func aCertificateThatNamesNoSourceStaysUnknown() throws {
        let found = try appraise("silent")
        #expect(found.trust.isTrusted && found.questions.map(\.isOfLeaf) == [false])
        #expect(
            found.trust.revocation
                == .unknown(
                    "no stapled OCSP response, no revocation list, the certificate names no source over http"))
        #expect(try appraise("silent", areRequired: true).trust.reasons == [.revocationUnknown])
    }

    @Test func aLocalListMakesAskingUnnecessary() throws {
        let lists = try ["middle", "root"].flatMap { issuer in
            try RevocationList.read(
                authority.makeList("\(issuer).crl", of: issuer, from: "20251201000000Z", until: "20260201000000Z"))
        }
        let chain = try [certificate("leaf"), certificate("middle")]
        let anchors = try TrustAnchors(system: false, additional: [certificate("root")])
        let found = ChainVerifier(anchors: anchors, revocationLists: lists).appraise(
            chain: chain, host: "localhost", at: Self.now, staple: .absent,
            statuses: KnownStatuses(areRequired: true, canBeLearned: true) { _, _ in nil })
        #expect(found.trust.isTrusted && found.trust.revocation == .good(by: .revocationList))
        #expect(found.questions.isEmpty)
    }
}
