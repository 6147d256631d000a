// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

/// The vault's records of credentials that programs write.
@Suite struct ProgramCredentialTests {
    private static let words = ["/usr/bin/pass", "show", "work"]

    private static func contents() throws -> VaultContents {
        var contents = VaultContents()
        try contents.setProgram(name: "api", user: nil, words: words, keepSeconds: nil)
        try contents.setProgram(name: "work", user: "jdoe", words: words, keepSeconds: 900)
        return contents
    }

    @Test func aProgramIsDecodedAsEncoded() throws {
        let contents = try Self.contents()
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read == contents && read.programs["work"]?.keepSeconds == 900 && read.programs["api"]?.user == nil)
        #expect(read.credentialNames == ["api", "work"] && read.credentials.isEmpty && read.tokens.isEmpty)
        #expect(try VaultRecords.encode(read) == encoded)
    }

    @Test func aProgramAndASecretOfOneKindReplaceEachOther() throws {
        var contents = try Self.contents()
        try contents.setCredential(name: "work", user: "jdoe", password: Secret(utf8: "p"))
        try contents.setToken(name: "api", token: Secret(utf8: "t"))
        #expect(contents.programs.isEmpty && contents.credentialNames == ["api", "work"])
        let before = contents.generation
        try contents.setProgram(name: "work", user: "jdoe", words: Self.words, keepSeconds: nil)
        try contents.setProgram(name: "api", user: nil, words: Self.words, keepSeconds: nil)
        #expect(contents.credentials.isEmpty && contents.tokens.isEmpty)
        #expect(contents.programs["work"]?.generation == before + 1)
        let isRemoved = ["work", "api"].map { contents.removeCredential(named: $0) }
        #expect(isRemoved == [true, true])
        #expect(contents.credentialNames.isEmpty)
    }

    @Test func anotherKindKeepsItsName() throws {
        var contents = try Self.contents()
        let before = contents
        let secret = Secret(utf8: "s")
        let changes: [(inout VaultContents) throws -> Void] = [
            { try $0.setProgram(name: "work", user: nil, words: Self.words, keepSeconds: nil) },
            { try $0.setProgram(name: "api", user: "jdoe", words: Self.words, keepSeconds: nil) },
            { try $0.setToken(name: "work", token: secret) },
            { try $0.setCredential(name: "api", user: "jdoe", password: secret) },
            { try $0.setPrincipal(name: "work", principal: "jdoe@CORP.EXAMPLE", proof: .password(secret)) },
        ]
        for change in changes {
            let error = #expect(throws: VaultError.self) { try change(&contents) }
            #expect(error?.code == .nameInUse)
            #expect(contents == before)
        }
    }

    @Test(
        arguments: [
            (["pass"], nil), ([], nil), (["/bin/echo", "a\nb"], nil),
            (["/" + String(repeating: "x", count: 5000)], nil),
            (Array(repeating: "/a", count: 65), nil), (["/bin/true"], 0), (["/bin/true"], 40_000_000),
        ] as [([String], Int64?)])
    func whatCannotBeRunIsNotStored(words: [String], keepSeconds: Int64?) throws {
        var contents = VaultContents()
        let error = #expect(throws: VaultError.self) {
            try contents.setProgram(name: "work", user: "jdoe", words: words, keepSeconds: keepSeconds)
        }
        #expect(error?.code == .invalidRecord && contents == VaultContents())
    }

    @Test func aDamagedProgramIsRefused() throws {
        let bytes = try VaultRecords.encode(try Self.contents()).withBytes { Array($0) }
        let path = try #require(bytes.indices.last { bytes[$0...].starts(with: "/usr".utf8) })
        var other = bytes
        other[path] = UInt8(ascii: "x")
        #expect(throws: VaultError.self) { try VaultRecords.decode(Secret(other)) }
        // A credential of the same name.
        var contents = try Self.contents()
        try contents.setCredential(name: "home", user: "jdoe", password: Secret(utf8: "p"))
        var twice = try VaultRecords.encode(contents).withBytes { Array($0) }
        let name = try #require(twice.indices.first { twice[$0...].starts(with: "home".utf8) })
        twice.replaceSubrange(name..<name + 4, with: "work".utf8)
        #expect(throws: VaultError.self) { try VaultRecords.decode(Secret(twice)) }
    }
}
