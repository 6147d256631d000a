// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Testing

struct IdentityTests {
    private let now = TestPKI.now

    @Test func aKeyOfAnotherCertificateMakesNoIdentity() throws {
        let chain = try TestPKI.chain("client-a")
        let stranger = try PrivateKey.generateP256()
        #expect(code { _ = try Identity(name: "x", chain: chain, key: stranger) } == .keyMismatch)
        #expect(code { _ = try Identity(name: "x", chain: [], key: stranger) } == .noCertificate)
    }

    @Test func issuersAreLookedForInTheWholeChain() throws {
        let ada = try TestPKI.identity("client-a")
        let names = try ["client-a-root", "client-a-intermediate", "client-a"].map { try TestPKI.leaf($0).subjectDER }
        for name in names { #expect(ada.fits(acceptableIssuers: [name], at: now)) }
        let other = try TestPKI.leaf("client-b-root").subjectDER
        #expect(ada.obstacle(acceptableIssuers: [other], at: now) == .issuerNotAccepted)
        #expect(ada.fits(acceptableIssuers: [other, names[0]], at: now))
        #expect(ada.fits(acceptableIssuers: [], at: now))
    }

    @Test func issuersAreComparedByMeaningNotByStringType() throws {
        // O=Countersign test, CN=Client root A, as PrintableString and with other case and spacing.
        let name: [UInt8] =
            [0x30, 0x33, 0x31, 0x19, 0x30, 0x17, 0x06, 0x03, 0x55, 0x04, 0x0A, 0x13, 0x10]
            + Array("COUNTERSIGN TEST".utf8)
            + [0x31, 0x16, 0x30, 0x14, 0x06, 0x03, 0x55, 0x04, 0x03, 0x13, 0x0D] + Array("Client root a".utf8)
        #expect(try TestPKI.identity("client-a").fits(acceptableIssuers: [name], at: now))
        #expect(try !TestPKI.identity("client-b").fits(acceptableIssuers: [name], at: now))
        #expect(try !TestPKI.identity("client-a").fits(acceptableIssuers: [Array(name.dropLast())], at: now))
    }

    @Test func datesPurposeAndSignaturesCount() throws {
        let ada = try TestPKI.identity("client-a")
        let bob = try TestPKI.identity("client-b")
        #expect(
            try TestPKI.identity("client-expired").obstacle(acceptableIssuers: [], at: now)
                == .expired(notAfter: 1_609_459_200))
        #expect(ada.obstacle(acceptableIssuers: [], at: 1_700_000_000) == .notYetValid(notBefore: 1_704_067_200))
        #expect(try TestPKI.identity("origin-ec").obstacle(acceptableIssuers: [], at: now) == .wrongPurpose)
        #expect(ada.fits(acceptableIssuers: [], signatureAlgorithms: [0x0804, 0x0403], at: now))
        #expect(
            ada.obstacle(acceptableIssuers: [], signatureAlgorithms: [0x0804, 0x0401], at: now) == .signatureNotAccepted
        )
        #expect(bob.fits(acceptableIssuers: [], signatureAlgorithms: [0x0804], at: now))
        #expect(
            bob.obstacle(acceptableIssuers: [], signatureAlgorithms: [0x0403, 0x0201], at: now) == .signatureNotAccepted
        )
    }

    @Test func theOneWhoseIssuerTheServerAcceptsIsChosen() throws {
        let all = try ["client-a", "client-b", "client-expired"].map { try TestPKI.identity($0) }
        for (root, expected) in [
            ("client-a-root", all[0]), ("client-a-intermediate", all[0]), ("client-b-root", all[1]),
        ] {
            let issuers = [try TestPKI.leaf(root).subjectDER]
            for candidates in [all, all.reversed()] {
                #expect(
                    Identity.choose(among: candidates, acceptableIssuers: issuers, at: now)
                        == .identity(expected, fitting: 1))
            }
        }
        #expect(Identity.choose(among: all, acceptableIssuers: [], at: now) == .identity(all[0], fitting: 2))
    }

    @Test func anotherIdentityAtTheEndDoesNotChangeTheChoice() throws {
        let first = try TestPKI.identity("client-a")
        let others = try (0..<7).map { number in
            try Identity(name: "a\(number)", chain: TestPKI.chain("client-b"), key: TestPKI.key("client-b"))
        }
        for count in 0...7 {
            let all = [first] + others.prefix(count)
            #expect(
                Identity.choose(among: all, acceptableIssuers: [], at: now)
                    == .identity(first, fitting: count + 1))
        }
        // One that has expired is never chosen.
        let expired = try TestPKI.identity("client-expired")
        #expect(
            Identity.choose(among: [expired, first] + others, acceptableIssuers: [], at: now)
                == .identity(first, fitting: 8))
    }

    @Test func aNamedIdentityIsTheOnlyCandidate() throws {
        let all = try ["client-a", "client-b", "client-expired"].map { try TestPKI.identity($0) }
        let issuers = [try TestPKI.leaf("client-a-root").subjectDER]
        func chosen(_ name: String) -> Identity.Choice {
            Identity.choose(among: all, acceptableIssuers: issuers, at: now, preferring: name)
        }
        #expect(chosen("client-a") == .identity(all[0], fitting: 1))
        #expect(chosen("client-b") == .none("identity \"client-b\": not issued by a CA that the server accepts"))
        #expect(chosen("client-expired") == .none("identity \"client-expired\": expired 2021-01-01"))
        #expect(chosen("laptop") == .none("no identity \"laptop\""))
        #expect(Identity.choose(among: [], acceptableIssuers: [], at: now) == .none("no identity"))
    }
}
