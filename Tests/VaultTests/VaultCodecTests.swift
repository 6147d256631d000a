// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct VaultCodecTests {
    private let vector: [UInt8]

    init() throws {
        vector = try #require(Hex.decode(VaultVectors.keyFileVault))
    }

    @Test func readsWhatAnotherImplementationWrote() throws {
        let header = try VaultHeader(of: vector)
        let dataKey = try VaultCodec.dataKey(of: header, key: VaultVectors.key)
        let contents = try VaultCodec.decode(vector, header: header, dataKey: dataKey)
        #expect(header.derivation == .none)
        #expect(contents.generation == VaultVectors.generation)
        #expect(contents.credentials.values.sorted { $0.name < $1.name } == VaultVectors.credentials)
        #expect(contents.identityKeys == ["laptop": VaultVectors.identityKey])
        #expect(contents.interception == VaultVectors.interception)
    }

    @Test func readsAnotherImplementationsPassphraseVault() throws {
        let vector = try #require(Hex.decode(VaultVectors.passphraseVault))
        let header = try VaultHeader(of: vector)
        let salt = (60..<76).map { UInt8($0) }
        #expect(header.derivation == .scrypt(cheapest, salt: salt))
        let key = try cheapest.key(from: Secret(utf8: VaultVectors.passphrase), salt: salt)
        let contents = try VaultCodec.decode(
            vector, header: header, dataKey: try VaultCodec.dataKey(of: header, key: key))
        #expect(contents.credentials["build"] == VaultVectors.credentials[0])
    }

    @Test func writesWhatAnotherImplementationWrites() throws {
        let header = try VaultCodec.header(
            wrapping: VaultVectors.dataKey, under: VaultVectors.key, derivation: .none, nonce: VaultVectors.wrapNonce)
        let contents = VaultContents(
            generation: VaultVectors.generation,
            credentials: Dictionary(uniqueKeysWithValues: VaultVectors.credentials.map { ($0.name, $0) }),
            identityKeys: ["laptop": VaultVectors.identityKey], interception: VaultVectors.interception)
        let written = try VaultCodec.encode(
            contents, header: header, dataKey: VaultVectors.dataKey, nonce: VaultVectors.payloadNonce)
        #expect(written == vector)
    }

    @Test(arguments: [VaultVectors.keyFileVault, VaultVectors.passphraseVault])
    func everyFlippedBitIsRefused(hex: String) throws {
        let vector = try #require(Hex.decode(hex))
        let derived = try VaultHeader(of: vector)
        let key =
            derived.derivation == .none
            ? VaultVectors.key
            : try cheapest.key(from: Secret(utf8: VaultVectors.passphrase), salt: (60..<76).map { UInt8($0) })
        for index in vector.indices {
            for bit in 0..<8 {
                var altered = vector
                altered[index] ^= 1 << UInt8(bit)
                let refused = try code {
                    let header = try VaultHeader(of: altered)
                    let dataKey = try VaultCodec.dataKey(of: header, key: key)
                    _ = try VaultCodec.decode(altered, header: header, dataKey: dataKey)
                }
                let expected: [VaultError.Code] =
                    switch index {
                    case 0..<4: [.notAVault]
                    case 4..<6: [.newerVersion, .notAVault]
                    case 6..<92: [.wrongKey, .wrongPassphrase, .altered]
                    case 104..<108: [.cut, .altered]
                    default: [.altered]
                    }
                let found = try #require(refused, "byte \(index), bit \(bit) went unnoticed")
                #expect(expected.contains(found), "byte \(index), bit \(bit): \(found)")
            }
        }
    }

    @Test func everyCutIsRefused() throws {
        for length in 0..<vector.count {
            #expect(try code { _ = try VaultHeader(of: Array(vector.prefix(length))) } == .cut, "\(length) bytes")
        }
    }

    @Test func extraBytesAfterTheVaultAreRefused() throws {
        #expect(try code { _ = try VaultHeader(of: vector + [0]) } == .altered)
    }

    @Test func anotherKeyIsRefused() throws {
        let header = try VaultHeader(of: vector)
        #expect(try code { _ = try VaultCodec.dataKey(of: header, key: VaultVectors.dataKey) } == .wrongKey)
    }

    @Test func aPayloadOfAnotherVaultIsRefused() throws {
        let header = try VaultCodec.header(
            wrapping: VaultVectors.dataKey, under: VaultVectors.key, derivation: .none, nonce: VaultVectors.payloadNonce
        )
        let other = try VaultCodec.encode(
            try filled(), header: header, dataKey: VaultVectors.dataKey, nonce: VaultVectors.payloadNonce)
        let mixed = other.prefix(104) + vector.dropFirst(104)
        let read = try VaultHeader(of: Array(mixed))
        let dataKey = try VaultCodec.dataKey(of: read, key: VaultVectors.key)
        #expect(try code { _ = try VaultCodec.decode(Array(mixed), header: read, dataKey: dataKey) } == .altered)
    }
}
