// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCertificates

/// The status of one certificate in a list of `openssl ca -gencrl`.
struct FetchedListTests {
    /// 2026-01-01.
    private static let now: Int64 = 1_767_225_600
    private static let from = "20251201000000Z"
    private static let until = "20260201000000Z"
    private let authority: OpenSSLAuthority

    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make("good", of: "root", OpenSSLAuthority.server)
        try authority.make("bad", of: "root", OpenSSLAuthority.server)
        try authority.revoke("bad", of: "root", because: "keyCompromise")
    }

    private func certificate(_ name: String) throws -> Certificate {
        try #require(try Certificate.readPEM(authority.bytes("\(name).pem")).first)
    }

    private func list(from: String = from, until: String = until, of issuer: String = "root") throws -> RevocationList {
        let bytes = try authority.makeList("\(issuer).crl", of: issuer, from: from, until: until)
        return try #require(try RevocationList.read(bytes).first)
    }

    private func judge(
        _ name: String, _ list: RevocationList, issuer: String = "root", at time: Int64 = now
    ) throws -> StatusJudgement {
        list.status(of: try certificate(name), issuedBy: try certificate(issuer), at: time)
    }

    @Test func aListSaysWhoIsRevokedWhenAndWhy() throws {
        let list = try list()
        let good = try judge("good", list)
        #expect(good.finding == .good && good.isDated)
        #expect(good.holdsUntil == 1_769_904_000 + 300, "2026-02-01 and five minutes")
        guard case .revoked(let entry) = try judge("bad", list).finding else {
            return #expect(Bool(false), "not revoked")
        }
        #expect(entry.reason == .keyCompromise)
        let today = Int64(Date().timeIntervalSince1970)
        #expect(entry.date.map { (today - 600...today + 5).contains($0) } == true, "\(entry.date ?? 0)")
    }

    @Test func theOrderOfQuestionsDoesNotMatter() throws {
        let list = try list()
        for name in ["bad", "good", "bad", "good"] {
            #expect(try (judge(name, list).finding == .good) == (name == "good"))
        }
    }

    @Test func aListOfAnotherIssuerDoesNotCount() throws {
        try authority.make("other", of: "other", OpenSSLAuthority.authority)
        #expect(try judge("bad", list(of: "other")).finding == .unknown("not for this certificate"))
        // The same name with another key.
        try authority.make("twin", of: "twin", OpenSSLAuthority.authority)
        let twin = try OpenSSLAuthority()
        try twin.make("root", of: "root", OpenSSLAuthority.authority)
        let forged = try RevocationList.read(
            twin.makeList("root.crl", of: "root", from: Self.from, until: Self.until))[0]
        #expect(try judge("good", forged).finding == .unknown("not for this certificate"))
    }

    @Test func anAlteredListDoesNotCount() throws {
        var bytes = try authority.makeList("root.crl", of: "root", from: Self.from, until: Self.until)
        let text = String(decoding: bytes, as: UTF8.self).components(separatedBy: "-----")[2].filter {
            !$0.isWhitespace
        }
        bytes = try #require(Base64.decode(text))
        bytes[bytes.count - 1] ^= 1
        let altered = try RevocationList.read(bytes)[0]
        #expect(try judge("good", altered).finding == .unknown("not signed by the issuer"))
        #expect(try judge("bad", altered).finding == .unknown("not signed by the issuer"))
    }

    @Test func aListCountsBetweenItsDatesAndFiveMinutes() throws {
        let list = try list()
        let start: Int64 = 1_764_547_200, end: Int64 = 1_769_904_000
        #expect(try judge("good", list, at: start - 300).finding == .good)
        #expect(try judge("good", list, at: start - 301).finding == .unknown("not valid before 2025-12-01"))
        #expect(try judge("good", list, at: start - 301).holdsUntil == start - 301)
        #expect(try judge("good", list, at: end + 300).finding == .good)
        #expect(try judge("good", list, at: end + 301).finding == .unknown("expired 2026-02-01"))
        #expect(!list.isCurrent(at: end + 301) && list.isCurrent(at: end))
    }

    @Test func impossibleDatesAreSaid() throws {
        let list = try list(from: "20260201000000Z", until: "20251201000000Z")
        #expect(try judge("good", list).finding == .unknown("its dates are impossible"))
        #expect(!list.isCurrent(at: Self.now))
    }

    /// A list whose issuing distribution point says that it is only for CA certificates (RFC 5280 §5.2.5).
    @Test func aListForOtherCertificatesDoesNotCount() throws {
        let configuration = authority.path("root.cnf")
        let text = TextFile.text(configuration) + "issuingDistributionPoint=critical,@scope\n[scope]\nonlyCA=TRUE\n"
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        #expect(try judge("bad", list()).finding == .unknown("not for this certificate"))
        let partial = text.replacingOccurrences(of: "onlyCA=TRUE", with: "onlysomereasons=keyCompromise")
        try partial.write(toFile: configuration, atomically: true, encoding: .utf8)
        #expect(try judge("good", list()).finding == .unknown("not for this certificate"))
    }

    /// The changes since list number 1 (RFC 5280 §5.2.4). OpenSSL does not require that the extension is critical.
    @Test(arguments: ["critical,", ""]) func aDeltaListDoesNotCount(critical: String) throws {
        let configuration = authority.path("root.cnf")
        let text = TextFile.text(configuration) + "2.5.29.27=\(critical)DER:020101\n"
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        let delta = try list()
        #expect(delta.isDelta)
        for name in ["good", "bad"] { #expect(try judge(name, delta).finding == .unknown("it is a delta list")) }
    }

    @Test func anUnknownCriticalExtensionMakesAListUnusable() throws {
        let configuration = authority.path("root.cnf")
        let text = TextFile.text(configuration) + "1.2.3.4=critical,DER:0500\n"
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        #expect(try judge("good", list()).finding == .unknown("has an unknown critical extension"))
    }

    @Test func aWeakHashDoesNotCount() throws {
        let configuration = authority.path("root.cnf")
        let text = TextFile.text(configuration).replacingOccurrences(
            of: "default_md = sha256", with: "default_md = sha1")
        try text.write(toFile: configuration, atomically: true, encoding: .utf8)
        #expect(try judge("good", list()).finding == .unknown("signed with a hash weaker than SHA-256"))
    }

    @Test func theIssuersKeyMustBePermittedToSignLists() throws {
        try authority.make(
            "mute", of: "mute", ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"])
        try authority.make("leaf", of: "mute", OpenSSLAuthority.server)
        let finding = try judge("leaf", list(of: "mute"), issuer: "mute").finding
        #expect(finding == .unknown("its issuer may not sign lists"))
    }
}
