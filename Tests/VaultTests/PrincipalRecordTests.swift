// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct PrincipalRecordTests {
    private static let password = PrincipalCredential.Proof.password(Secret(utf8: "kanarie"))
    private static let keys = PrincipalCredential.Proof.keys(Secret([0, 0, 0, 18, 0, 0, 0, 2, 0, 1, 7]))

    @Test func aPrincipalIsDecodedAsEncoded() throws {
        var contents = try filled()
        let before = contents.recordCount
        try contents.setPrincipal(name: "work", principal: "jdoe@CORP.EXAMPLE", proof: Self.password)
        let batch = try contents.setPrincipal(name: "batch", principal: "b/host@CORP.EXAMPLE", proof: Self.keys)
        let read = try VaultRecords.decode(try VaultRecords.encode(contents))
        #expect(read == contents && read.recordCount == before + 2)
        #expect(read.principals["batch"] == batch && batch.source == .vault(generation: contents.generation))
        #expect(read.principals["work"]?.proof == Self.password)
    }

    /// A name is for a password, a token or a principal.
    @Test func aNameHasOneCredential() throws {
        var contents = VaultContents()
        func setPrincipal() throws {
            try contents.setPrincipal(name: "work", principal: "jdoe@CORP.EXAMPLE", proof: Self.password)
        }
        func setToken() throws { try contents.setToken(name: "work", token: Secret(utf8: "abc")) }
        func setPassword() throws {
            try contents.setCredential(name: "work", user: "jdoe", password: Secret([1]))
        }
        let all = [setPrincipal, setToken, setPassword]
        for (index, first) in all.enumerated() {
            try first()
            try first()
            for (other, second) in all.enumerated() where other != index {
                #expect(try code { try second() } == .nameInUse)
            }
            #expect(contents.credentialNames == ["work"])
            #expect(contents.removeCredential(named: "work") && !contents.removeCredential(named: "work"))
            #expect(contents.credentialNames.isEmpty)
        }
    }

    @Test func twoCredentialsOfOneNameAreNotRead() throws {
        var contents = VaultContents()
        try contents.setCredential(name: "aaaa", user: "jdoe", password: Secret([1]))
        try contents.setPrincipal(name: "bbbb", principal: "jdoe@CORP.EXAMPLE", proof: Self.password)
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("bbbb".utf8)) })
        bytes.replaceSubrange(place..<place + 4, with: Array("aaaa".utf8))
        #expect(try code { _ = try VaultRecords.decode(Secret(bytes)) } == .altered)
    }

    @Test(arguments: ["", "jdoe", "@CORP.EXAMPLE", "jdoe@", "a@b@C", "a\n@C"])
    func anotherTextIsNoPrincipal(text: String) throws {
        var contents = VaultContents()
        let refused = try code { try contents.setPrincipal(name: "work", principal: text, proof: Self.password) }
        #expect(refused == .invalidRecord && contents == VaultContents())
    }

    @Test func everyCutRecordIsRefused() throws {
        var contents = VaultContents()
        try contents.setPrincipal(name: "work", principal: "jdoe@CORP.EXAMPLE", proof: Self.keys)
        let bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        for count in bytes.indices {
            #expect(try code { _ = try VaultRecords.decode(Secret(bytes.prefix(count))) } == .altered, "\(count)")
        }
    }
}
