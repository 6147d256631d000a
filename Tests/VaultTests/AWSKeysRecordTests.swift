// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Testing

@testable import CountersignVault

/// The vault's records of AWS' keys, and of programs that write them.
@Suite struct AWSKeysRecordTests {
    private static let words = ["/usr/bin/aws", "configure", "export-credentials"]

    private static func keys(_ id: String = "ASIAEXAMPLE", isTemporary: Bool = true) throws -> AWSKeys {
        try AWSKeys(
            accessKeyID: id, secret: Secret(utf8: "canary-secret"),
            sessionToken: isTemporary ? Secret(utf8: "canary-session") : nil, expires: isTemporary ? 1_800_000_000 : nil
        )
    }

    private static func contents() throws -> VaultContents {
        var contents = VaultContents()
        try contents.setProgram(name: "api", user: nil, words: words, keepSeconds: nil)
        try contents.setAWSKeys(name: "role", keys())
        try contents.setAWSKeys(name: "account", keys("AKIAEXAMPLE", isTemporary: false))
        try contents.setProgram(name: "sso", .awsKeys, words: words, keepSeconds: 900)
        return contents
    }

    @Test func keysAreDecodedAsEncoded() throws {
        let contents = try Self.contents()
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read == contents)
        #expect(read.awsKeys["role"]?.keys == (try Self.keys()) && read.awsKeys["account"]?.keys.sessionToken == nil)
        #expect(read.programs["sso"]?.written == .awsKeys && read.programs["api"]?.written == .token)
        #expect(read.credentialNames == ["account", "api", "role", "sso"])
        #expect(try VaultRecords.encode(read) == encoded)
    }

    @Test func keysAndAProgramThatWritesThemReplaceEachOther() throws {
        var contents = try Self.contents()
        let before = contents.generation
        try contents.setAWSKeys(name: "sso", Self.keys())
        try contents.setProgram(name: "role", .awsKeys, words: Self.words, keepSeconds: nil)
        #expect(contents.awsKeys.keys.sorted() == ["account", "sso"])
        #expect(contents.programs.keys.sorted() == ["api", "role"])
        #expect(contents.awsKeys["sso"]?.generation == before + 1)
        let isRemoved = ["sso", "role", "account", "nobody"].map { contents.removeCredential(named: $0) }
        #expect(isRemoved == [true, true, true, false] && contents.credentialNames == ["api"])
    }

    @Test func anotherKindKeepsItsName() throws {
        var contents = try Self.contents()
        try contents.setCredential(name: "work", user: "jdoe", password: Secret(utf8: "p"))
        try contents.setToken(name: "token", token: Secret(utf8: "t"))
        try contents.setPrincipal(
            name: "principal", principal: "jdoe@CORP.EXAMPLE", proof: .password(Secret(utf8: "p")))
        let before = contents
        let secret = Secret(utf8: "s")
        let keys = try Self.keys()
        let words = Self.words
        var changes: [(inout VaultContents) throws -> Void] = ["work", "token", "principal", "api"].flatMap { name in
            [
                { _ = try $0.setAWSKeys(name: name, keys) },
                { _ = try $0.setProgram(name: name, .awsKeys, words: words, keepSeconds: nil) },
            ] as [(inout VaultContents) throws -> Void]
        }
        for name in ["role", "sso"] {
            changes += [
                { _ = try $0.setToken(name: name, token: secret) },
                { _ = try $0.setCredential(name: name, user: "jdoe", password: secret) },
                { _ = try $0.setPrincipal(name: name, principal: "jdoe@CORP.EXAMPLE", proof: .password(secret)) },
                { _ = try $0.setProgram(name: name, user: nil, words: words, keepSeconds: nil) },
                { _ = try $0.setProgram(name: name, user: "jdoe", words: words, keepSeconds: nil) },
            ]
        }
        for change in changes {
            let error = #expect(throws: VaultError.self) { try change(&contents) }
            #expect(error?.code == .nameInUse)
            #expect(contents == before)
        }
    }

    @Test func damagedKeysAreRefused() throws {
        let bytes = try VaultRecords.encode(try Self.contents()).withBytes { Array($0) }
        for text in ["ASIAEXAMPLE", "canary-secret", "canary-session"] {
            var other = bytes
            let place = try #require(bytes.indices.last { bytes[$0...].starts(with: text.utf8) })
            other[place] = UInt8(ascii: " ")
            #expect(throws: VaultError.self) { try VaultRecords.decode(Secret(other)) }
        }
        // A program's credential of the same name.
        var twice = bytes
        let name = try #require(twice.indices.first { twice[$0...].starts(with: "role".utf8) })
        twice.replaceSubrange(name..<name + 4, with: "api\0".utf8)
        #expect(throws: VaultError.self) { try VaultRecords.decode(Secret(twice)) }
    }
}
