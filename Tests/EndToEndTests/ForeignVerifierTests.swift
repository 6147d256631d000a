// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Foundation
import Testing

/// A thief of the issuing key can impersonate the allowed sites and no others, with any client.
@Suite(.waiting) struct ForeignVerifierTests {
    private struct Forgery {
        let host: String
        /// The subject alternative names in the forged certificates.
        let names: String
        var isBelowOwnAuthority = false
        let isAccepted: Bool
    }

    private static let list = "https://listed.test.localhost\nhttps://*.wild.test.localhost\n"
    private static let forgeries = [
        Forgery(host: "listed.test.localhost", names: "DNS:listed.test.localhost", isAccepted: true),
        Forgery(host: "a.wild.test.localhost", names: "DNS:*.wild.test.localhost", isAccepted: true),
        Forgery(host: "bank.example", names: "DNS:bank.example", isAccepted: false),
        Forgery(host: "test.localhost", names: "DNS:test.localhost", isAccepted: false),
        Forgery(host: "unlisted.test.localhost", names: "DNS:*.test.localhost", isAccepted: false),
        Forgery(host: "bank.example", names: "DNS:listed.test.localhost,DNS:bank.example", isAccepted: false),
        Forgery(host: "127.0.0.1", names: "IP:127.0.0.1", isAccepted: false),
        Forgery(host: "bank.example", names: "DNS:bank.example", isBelowOwnAuthority: true, isAccepted: false),
        Forgery(
            host: "listed.test.localhost", names: "DNS:listed.test.localhost", isBelowOwnAuthority: true,
            isAccepted: false),
    ]

    /// Servers that present the forged certificates.
    private final class Stolen: Sendable {
        private static let made = Result { try Stolen() }

        static var shared: Stolen { get throws { try made.get() } }

        let root: String
        let places: [String]
        private let origins: ChainOrigins
        private let user: Countersign

        private init() throws {
            user = try Countersign()
            try user.writeSites(ForeignVerifierTests.list)
            let authority = try StolenCA.of(user)
            root = try user.folder.write("root.pem", authority.root.pem)
            let forger = try Forger(authority, in: user.folder)
            let chains = try ForeignVerifierTests.forgeries.enumerated().map { index, forgery in
                try forger.chain(
                    "forgery-\(index)", names: forgery.names, belowOwnAuthority: forgery.isBelowOwnAuthority)
            }
            let origins = try ChainOrigins(chains, user: Countersign.user, password: Countersign.password)
            self.origins = origins
            places = try zip(ForeignVerifierTests.forgeries, chains).map { forgery, chain in
                "\(forgery.host):\(try origins.port(chain.name))"
            }
        }
    }

    @Test(arguments: ForeignVerifier.allCases)
    func stolenIssuingKeyIsLimitedToTheListedNames(_ verifier: ForeignVerifier) throws {
        let stolen = try Stolen.shared
        let verdicts = try verifier.verdicts(stolen.places, root: stolen.root)
        for (forgery, verdict) in zip(Self.forgeries, verdicts) {
            guard !forgery.isAccepted else {
                #expect(verdict == "accepted", "\(forgery)")
                continue
            }
            // A CA below the issuing certificate is a separate fault, which some clients report first.
            let diagnostic = forgery.isBelowOwnAuthority ? "" : verifier.diagnostic
            #expect(verdict != "accepted", "\(forgery)")
            #expect(diagnostic.isEmpty || verdict.contains(diagnostic), "\(forgery): \(verdict)")
        }
    }

    // MARK: Ten thousand lines

    /// Servers with forged certificates, signed with the stolen key of a list that needs many issuing certificates.
    private final class StolenMany: Sendable {
        private static let made = Result { try StolenMany() }

        static var shared: StolenMany { get throws { try made.get() } }

        let root: String
        let accepted: [String]
        let refused: [String]
        private let origins: ChainOrigins
        private let user: Countersign

        private init() throws {
            user = try Countersign()
            let hosts = (0..<10_000).map { "host\($0).many.test.localhost" }
            try user.writeSites((hosts + ["*.wild.test.localhost"]).map { "https://\($0)\n" }.joined())
            let authority = try StolenCA.of(user)
            let parts = authority.issuing
            guard parts.count > 30 else { throw HarnessError("there are \(parts.count) issuing certificates") }
            root = try user.folder.write("root.pem", authority.root.pem)
            let forger = try Forger(authority, in: user.folder)
            func own(_ host: String) throws -> Int {
                let time = Int64(Date().timeIntervalSince1970)
                let issuer = try authority.mintLeaf(host: host, key: authority.issuingKey, at: time)[1]
                return parts.firstIndex(of: issuer) ?? 0
            }
            var forgeries = try [hosts[0], hosts[5_000], hosts[9_999], "x.wild.test.localhost"].map {
                (host: $0, part: try own($0))
            }
            let good = forgeries.count
            for part in parts.indices { forgeries.append(("bank.example", part)) }
            // Listed hosts that belong to other issuing certificates.
            let middle = try own(hosts[5_000])
            for part in [0, middle - 1, middle + 1, parts.count - 1] { forgeries.append((hosts[5_000], part)) }
            let chains = try forgeries.enumerated().map { index, forgery in
                try forger.chain("many-\(index)", names: "DNS:\(forgery.host)", part: forgery.part)
            }
            let origins = try ChainOrigins(chains, user: Countersign.user, password: Countersign.password)
            self.origins = origins
            let places = try zip(forgeries, chains).map { "\($0.host):\(try origins.port($1.name))" }
            accepted = Array(places.prefix(good))
            refused = Array(places.dropFirst(good))
        }
    }

    @Test(arguments: ForeignVerifier.allCases)
    func eachIssuingCertificateIsLimitedToItsNames(_ verifier: ForeignVerifier) throws {
        let stolen = try StolenMany.shared
        let verdicts = try verifier.verdicts(stolen.accepted + stolen.refused, root: stolen.root)
        let good = stolen.accepted.count
        #expect(verdicts.prefix(good).allSatisfy { $0 == "accepted" }, "\(verdicts.prefix(good))")
        for (place, verdict) in zip(stolen.refused, verdicts.dropFirst(good)) {
            #expect(verdict != "accepted" && verdict.contains(verifier.diagnostic), "\(place): \(verdict)")
        }
    }
}
