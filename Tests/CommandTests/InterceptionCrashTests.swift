// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import CountersignCertificates

/// Replacing a list that needs several issuing certificates, in a process that strace kills at each call that writes,
/// syncs or renames a file.
@Suite(.waiting) struct InterceptionCrashTests {
    private let sandbox: Sandbox
    private let home: Home
    private static let old = (0..<600).map { "old\($0).dept\($0 % 7).corp.example" }.sorted()
    private static let new = (0..<900).map { "new\($0).dept\($0 % 7).corp.example" }.sorted()

    init() throws {
        sandbox = try Sandbox()
        home = Home(path: sandbox.home)
        try list(Self.old)
        try sandbox.succeed("exec", "--", "true")
    }

    private func list(_ hosts: [String]) throws {
        try sandbox.folder.write("home/AllowedSites/many.sites", hosts.map { "https://\($0)\n" }.joined())
    }

    /// The issuing certificates in the file, verified against the root.
    private func issuing() throws -> [Certificate] {
        let found = try Certificate.readPEM(Array(sandbox.folder.text("home/Certs/interception/issuing.pem").utf8))
        let root = try #require(try InterceptionStore(home: home).root())
        #expect(found.allSatisfy { $0.isSigned(by: root) })
        return found
    }

    private func names(_ certificates: [Certificate]) throws -> [String] {
        try certificates.flatMap { try #require(NameConstraints(of: $0)).names }
    }

    /// The CA that the next process would load for `hosts` from the files and the vault, without creating anything.
    private func serves(_ hosts: [String]) throws -> Bool {
        let keys = try SealedVault(home: home.path).open { throw CancellationError() }.contents.interception
        let root = try #require(try InterceptionStore(home: home).root())
        let authority = try InterceptionAuthority(
            root: root, issuing: issuing(), issuingKey: PrivateKey(pkcs8: try #require(keys).issuingKey))
        return authority.serves(hosts, at: Int64(Date().timeIntervalSince1970))
    }

    @Test(arguments: [("rename", 2), ("fsync", 4), ("write", 3), ("unlink", 1)])
    func killedReissueLeavesTheOldOrTheNewCertificates(call: String, least: Int) throws {
        let root = try InterceptionStore(home: home).root()
        #expect(try issuing().count > 2)
        var count = 1
        var found: Set<String> = []
        while true {
            try list(Self.old)
            try sandbox.succeed("exec", "--", "true")
            let before = try issuing()
            #expect(try serves(Self.old))

            try list(Self.new)
            if let calls = try sandbox.callsUnlessKilled(at: call, count, ["exec", "--", "true"]) {
                #expect(count > 1 && calls >= least, "\(call): \(calls)")
                break
            }
            let comment = Comment(rawValue: "killed at \(call) \(count)")
            let left = try issuing()
            let isNew = try names(left) == Self.new
            #expect(left == before || isNew, comment)
            found.insert(left == before ? "old" : "new")

            let next = try sandbox.countersign("exec", "--", "true")
            #expect(next.status == 0, "\(call) \(count): \(next.said)")
            #expect(try serves(Self.new), comment)
            #expect(try InterceptionStore(home: home).root() == root, comment)
            count += 1
            try #require(count < 60)
        }
        #expect(found.contains("old"))
        if call != "unlink" { #expect(found.contains("new")) }
    }
}
