// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct VaultContentsTests {
    @Test func everyChangeHasItsOwnGeneration() throws {
        var contents = VaultContents()
        let first = try contents.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        let again = try contents.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        #expect((first.generation ?? 0) < (again.generation ?? 0))
        #expect(contents.credentials["a"]?.generation == again.generation)
        contents.removeCredential(named: "a")
        let renewed = try contents.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        #expect((renewed.generation ?? 0) > (again.generation ?? 0))
        #expect(contents.generation == renewed.generation)
    }

    @Test func aNameStandsForAPasswordOrAToken() throws {
        var contents = VaultContents()
        try contents.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        let first = try contents.setToken(name: "b", token: Secret(utf8: "t"))
        let again = try contents.setToken(name: "b", token: Secret(utf8: "t"))
        #expect((first.generation ?? 0) < (again.generation ?? 0))
        let before = contents
        #expect(try code { try contents.setToken(name: "a", token: Secret(utf8: "t")) } == .nameInUse)
        #expect(
            try code { try contents.setCredential(name: "b", user: "u", password: Secret(utf8: "p")) } == .nameInUse)
        for token in ["", "Bearer t", "t\n", String(repeating: "t", count: 16385)] {
            #expect(try code { try contents.setToken(name: "c", token: Secret(utf8: token)) } == .invalidRecord)
        }
        #expect(try code { try contents.setToken(name: "no name", token: Secret(utf8: "t")) } == .invalidRecord)
        #expect(contents == before)
        #expect(contents.credentialNames == ["a", "b"])
        let removed = [contents.removeCredential(named: "b"), contents.removeCredential(named: "b")]
        #expect(removed == [true, false])
        #expect(contents.generation == before.generation + 1)
    }

    /// A process that reads the vault again uses the objects that it has.
    @Test func anUnchangedTokenIsShared() throws {
        var known = VaultContents()
        try known.setToken(name: "b", token: Secret(utf8: "t"))
        var read = try VaultRecords.decode(try VaultRecords.encode(known))
        try read.setCredential(name: "a", user: "u", password: Secret(utf8: "p"))
        #expect(read.tokens["b"]?.token !== known.tokens["b"]?.token)
        #expect(read.sharingSecrets(with: known).tokens["b"]?.token === known.tokens["b"]?.token)
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

    private static func decision(
        _ host: String = "a.example", port: UInt16 = 443, leaf: UInt8 = 7, until: Int64? = nil, made: Int64 = 1
    ) -> TrustExceptionRecord {
        TrustExceptionRecord(
            host: host, port: port, leafSHA256: [UInt8](repeating: leaf, count: 32), until: until, answers: false,
            made: made)
    }

    @Test func aTrustExceptionIsForOneHostPortAndLeafAndTheLastOneApplies() throws {
        var contents = VaultContents()
        let made = [
            Self.decision("b.example"), Self.decision(port: 8443), Self.decision(leaf: 9), Self.decision(leaf: 8),
        ]
        for decision in made { try contents.setTrustException(decision) }
        #expect(contents.trustExceptions == [made[3], made[2], made[1], made[0]])
        let again = Self.decision(leaf: 9, until: 5, made: 2)
        try contents.setTrustException(again)
        #expect(contents.trustExceptions == [made[3], again, made[1], made[0]])
        #expect(contents.generation == 6)
        let forgotten = contents.removeTrustExceptions(host: "a.example", port: 443)
        #expect(forgotten == 2)
        #expect(contents.trustExceptions == [made[1], made[0]])
        let none = contents.removeTrustExceptions(host: "a.example", port: 443)
        #expect(none == 0 && contents.generation == 7)
    }

    @Test func aTrustExceptionAppliesThroughItsLastSecond() {
        #expect(Self.decision(until: 10).counts(at: 10))
        #expect(!Self.decision(until: 10).counts(at: 11))
        #expect(Self.decision().counts(at: .max))
    }

    @Test func anInvalidTrustExceptionIsRefused() throws {
        let refused = [
            Self.decision(""), Self.decision("A.example"), Self.decision("*.a.example"), Self.decision("a b"),
            Self.decision(String(repeating: "a", count: 254)), Self.decision(port: 0), Self.decision(until: -1),
            Self.decision(made: -1),
            TrustExceptionRecord(host: "a", port: 1, leafSHA256: [1], until: nil, answers: false, made: 1),
        ]
        for decision in refused {
            var contents = VaultContents()
            #expect(try code { try contents.setTrustException(decision) } == .invalidRecord, "\(decision)")
            #expect(contents == VaultContents())
        }
        var contents = VaultContents()
        #expect(
            try code {
                try contents.setTrustException(Self.decision(String(repeating: "a", count: 253), port: 65535))
            } == nil)
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

    // MARK: The order of identities

    private func key(_ name: String) -> IdentityKey {
        IdentityKey(name: name, privateKey: Secret([1]), leafSHA256: [UInt8](repeating: 5, count: 32))
    }

    private func tokenKey(_ name: String) -> TokenKey {
        TokenKey(
            name: name, uri: "pkcs11:object=a", pin: Secret([0x31]), leafSHA256: [UInt8](repeating: 5, count: 32))
    }

    @Test func identitiesStayInTheOrderInWhichTheyWereAdded() throws {
        var contents = VaultContents()
        for name in ["m", "z", "a"] { try contents.setIdentityKey(key(name)) }
        #expect(contents.identityOrder == ["m", "z", "a"])
        try contents.setTokenKey(tokenKey("b"))
        try contents.setTokenKey(tokenKey("m"))
        try contents.setIdentityKey(key("b"))
        try contents.setIdentityKey(key("z"))
        #expect(contents.identityOrder == ["m", "z", "a", "b"])
        #expect(try VaultRecords.decode(VaultRecords.encode(contents)) == contents)
        contents.removeTokenKey(named: "m")
        contents.removeIdentityKey(named: "z")
        #expect(contents.identityOrder == ["a", "b"])
        #expect(try VaultRecords.decode(VaultRecords.encode(contents)) == contents)
        try contents.setIdentityKey(key("m"))
        #expect(contents.identityOrder == ["a", "b", "m"])
    }

    @Test(
        arguments: [
            (["m", "a"], nil), (["a", "m"], .altered), (["m"], .altered), (["m", "a", "z"], .altered),
            (["m", "a", "a"], .altered), (["z", "a"], .altered),
        ] as [([String], VaultError.Code?)])
    func onlyTheOrderOfTheStoredIdentitiesIsRead(order: [String], expected: VaultError.Code?) throws {
        var contents = VaultContents()
        for name in ["a", "m"] { try contents.setIdentityKey(key(name)) }
        func number(_ value: Int) -> [UInt8] { [0, 0, 0, UInt8(value)] }
        let list = number(order.count) + order.flatMap { number($0.utf8.count) + Array($0.utf8) }
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        bytes[13] += 1
        bytes += [16] + number(list.count) + list
        if let expected {
            #expect(try code { _ = try VaultRecords.decode(Secret(bytes)) } == expected)
        } else {
            #expect(try VaultRecords.decode(Secret(bytes)).identityOrder == order)
        }
    }
}
