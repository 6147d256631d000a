// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct TokenKeyTests {
    private static func key(
        _ name: String = "card", uri: String = "pkcs11:token=work;object=a", pin: Int = 6, digest: Int = 32
    ) -> TokenKey {
        TokenKey(
            name: name, uri: uri, pin: Secret([UInt8](repeating: 0x31, count: pin)),
            leafSHA256: [UInt8](repeating: 5, count: digest))
    }

    @Test func aTokensKeyIsDecodedAsEncoded() throws {
        var contents = try filled()
        try contents.setTokenKey(Self.key())
        try contents.setTokenKey(Self.key("badge", uri: "pkcs11:id=%01?module-path=/m.so", pin: 256))
        let encoded = try VaultRecords.encode(contents)
        #expect(try VaultRecords.decode(encoded) == contents)
        #expect(contents.tokenKeys.keys.sorted() == ["badge", "card"])
        // The key that was read earlier is no longer the stored one.
        contents.refusePIN(of: Self.key(pin: 7))
        #expect(contents.tokenKeys["card"]?.isPINRefused == false)
        contents.refusePIN(of: Self.key())
        #expect(contents.tokenKeys["card"]?.isPINRefused == true)
        #expect(try VaultRecords.decode(try VaultRecords.encode(contents)) == contents)
        try contents.setTokenKey(Self.key())
        #expect(contents.tokenKeys["card"]?.isPINRefused == false)
        // One record is the order, because "badge" was added after "card".
        #expect(contents.recordCount == (try filled()).recordCount + 3)
    }

    @Test func anIdentityHasOneKey() throws {
        var contents = VaultContents()
        let digest = [UInt8](repeating: 5, count: 32)
        try contents.setTokenKey(Self.key())
        try contents.setIdentityKey(IdentityKey(name: "card", privateKey: Secret([1]), leafSHA256: digest))
        #expect(contents.tokenKeys.isEmpty && contents.identityKeys.count == 1)
        try contents.setTokenKey(Self.key())
        #expect(contents.tokenKeys.count == 1 && contents.identityKeys.isEmpty)
        let before = contents.generation
        #expect(contents.removeTokenKey(named: "card") && !contents.removeTokenKey(named: "card"))
        #expect(contents.generation == before + 1)
    }

    @Test func twoKeysOfOneIdentityAreNotRead() throws {
        var contents = VaultContents()
        try contents.setTokenKey(Self.key("aaaa"))
        try contents.setIdentityKey(
            IdentityKey(name: "bbbb", privateKey: Secret([1]), leafSHA256: [UInt8](repeating: 5, count: 32)))
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("aaaa".utf8)) })
        bytes.replaceSubrange(place..<place + 4, with: Array("bbbb".utf8))
        #expect(try code { _ = try VaultRecords.decode(Secret(bytes)) } == .altered)
    }

    @Test func everyCutRecordIsRefused() throws {
        var contents = VaultContents()
        try contents.setTokenKey(Self.key())
        let encoded = try VaultRecords.encode(contents).withBytes { Array($0) }
        for length in 0..<encoded.count {
            #expect(
                try code { _ = try VaultRecords.decode(Secret(encoded.prefix(length))) } == .altered, "\(length) bytes")
        }
    }

    @Test(arguments: [
        key("no name"), key(uri: ""), key(uri: "a\nb"), key(uri: String(repeating: "a", count: 4097)), key(pin: 0),
        key(pin: 257), key(digest: 31),
    ])
    func valuesOutOfBoundsAreRefused(key: TokenKey) throws {
        var contents = VaultContents()
        #expect(try code { try contents.setTokenKey(key) } == .invalidRecord)
        #expect(contents.generation == 1)
    }

    @Test func noDescriptionShowsThePIN() throws {
        let key = TokenKey(name: "card", uri: "pkcs11:object=a", pin: Secret(utf8: "canary"), leafSHA256: [])
        var dumped = ""
        dump(key, to: &dumped)
        #expect(!"\(key)\(dumped)".contains("canary"))
    }
}
