// SPDX-License-Identifier: Apache-2.0

import Cryptography
import Testing

@testable import Vault

@Suite struct VaultContentsTests {
    @Test func everyChangeHasItsOwnGeneration() throws {
        var contents = VaultContents()
        let first = try contents.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        let again = try contents.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        #expect(first.generation < again.generation)
        #expect(contents.credentials["a"]?.generation == again.generation)
        contents.removeCredential(named: "a")
        let renewed = try contents.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        #expect(renewed.generation > again.generation)
        #expect(contents.generation == renewed.generation)
    }

    @Test func removingNothingChangesNothing() {
        var contents = VaultContents()
        let removed = [contents.removeCredential(named: "a"), contents.removeIdentityKey(named: "a")]
        #expect(removed == [false, false])
        #expect(contents == VaultContents())
    }

    @Test func whatWasRemovedIsGone() throws {
        var contents = try filled()
        let removed = [contents.removeCredential(named: "enrollment"), contents.removeIdentityKey(named: "laptop")]
        #expect(removed == [true, true])
        try contents.setInterception(nil)
        #expect(contents.recordCount == 0)
        #expect(contents.credentials.isEmpty && contents.identityKeys.isEmpty && contents.interception == nil)
    }

    @Test(arguments: [
        ("enrollment", true), ("a", true), ("9", true), ("J.Doe_2-x@acme+1", true),
        (String(repeating: "a", count: 128), true), (String(repeating: "a", count: 129), false),
        ("", false), (".a", false), ("-a", false), ("a/b", false), ("a b", false), ("a\n", false), ("é", false),
        ("a,b", false), ("a=b", false),
    ])
    func namesAreFileNamesAndListWords(name: String, isName: Bool) throws {
        #expect(VaultLimits.isName(name) == isName)
        var contents = VaultContents()
        let refused = try code { try contents.setCredential(name: name, user: "u", password: Secret(utf8: "p")) }
        #expect(refused == (isName ? nil : .invalidRecord))
        #expect(contents.generation == (isName ? 2 : 1))
    }

    @Test(arguments: [
        ("u", true), ("ACME\\jdoe", true), ("josé", true), ("", false), ("a\u{0}b", false), ("a\u{7F}", false),
    ])
    func usersHaveNoControlCharacters(user: String, isUser: Bool) throws {
        var contents = VaultContents()
        let refused = try code { try contents.setCredential(name: "a", user: user, password: Secret(utf8: "p")) }
        #expect(refused == (isUser ? nil : .invalidRecord))
    }

    @Test func valuesHaveTheirLimits() throws {
        func setPassword(_ bytes: Int) throws {
            var contents = VaultContents()
            try contents.setCredential(name: "a", user: "u", password: Secret(count: bytes) { _ in })
        }
        func setUser(_ bytes: Int) throws {
            var contents = VaultContents()
            try contents.setCredential(
                name: "a", user: String(repeating: "u", count: bytes), password: Secret(utf8: "p"))
        }
        func setKey(_ bytes: Int, digest: Int = 32) throws {
            var contents = VaultContents()
            try contents.setIdentityKey(
                IdentityKey(
                    name: "a", privateKey: Secret(count: bytes) { _ in },
                    leafSHA256: [UInt8](repeating: 0, count: digest)))
        }
        func setCA(_ root: Int, _ issuing: Int) throws {
            var contents = VaultContents()
            try contents.setInterception(
                InterceptionKeys(rootKey: Secret(count: root) { _ in }, issuingKey: Secret(count: issuing) { _ in }))
        }
        #expect(try code { try setPassword(16384) } == nil)
        #expect(try code { try setPassword(16385) } == .invalidRecord)
        #expect(try code { try setPassword(0) } == .invalidRecord)
        #expect(try code { try setUser(1024) } == nil)
        #expect(try code { try setUser(1025) } == .invalidRecord)
        #expect(try code { try setKey(65536) } == nil)
        #expect(try code { try setKey(65537) } == .invalidRecord)
        #expect(try code { try setKey(1, digest: 31) } == .invalidRecord)
        #expect(try code { try setCA(1, 65536) } == nil)
        #expect(try code { try setCA(65537, 1) } == .invalidRecord)
        #expect(try code { try setCA(1, 0) } == .invalidRecord)
    }
}
