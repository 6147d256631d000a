// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct VaultHeaderTests {
    private func header(version: UInt16 = 1, kind: UInt8, _ exponent: UInt8, _ parameters: UInt32...) -> [UInt8] {
        var bytes = Array("CSV1".utf8) + [UInt8(version >> 8), UInt8(version & 255), kind, exponent]
        for parameter in parameters {
            bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: parameter >> UInt32($0)) }
        }
        bytes += [UInt8](repeating: kind, count: 16)
        bytes += [UInt8](repeating: 5, count: 12 + 48 + 12)
        return bytes + [0, 0, 0, 2, 9, 9]
    }

    @Test(
        arguments: [
            (15, 8, 1), (20, 8, 1), (17, 8, 4),
        ] as [(UInt8, UInt32, UInt32)])
    func scryptWithinTheBoundsIsRead(exponent: UInt8, blockSize: UInt32, parallelization: UInt32) throws {
        let bytes = header(kind: 1, exponent, blockSize, parallelization)
        let read = try VaultHeader(of: bytes)
        let scrypt = Scrypt(costExponent: exponent, blockSize: blockSize, parallelization: parallelization)
        #expect(read.derivation == .scrypt(scrypt, salt: [UInt8](repeating: 1, count: 16)))
        #expect(read.encoded() + [9, 9] == bytes)
    }

    @Test(
        arguments: [
            (14, 8, 1), (21, 8, 1), (255, 8, 1), (0, 8, 1),
            (17, 7, 1), (17, 9, 1), (17, 0, 1), (17, 0xFFFF_FFFF, 1),
            (17, 8, 0), (17, 8, 5), (17, 8, 0xFFFF_FFFF),
        ] as [(UInt8, UInt32, UInt32)])
    func scryptOutOfBoundsIsRefused(exponent: UInt8, blockSize: UInt32, parallelization: UInt32) throws {
        let bytes = header(kind: 1, exponent, blockSize, parallelization)
        #expect(try code { _ = try VaultHeader(of: bytes) } == .altered)
    }

    @Test(arguments: [(1, 0, 0), (0, 1, 0), (0, 0, 1)] as [(UInt8, UInt32, UInt32)])
    func aKeyFileWithScryptParametersIsRefused(exponent: UInt8, blockSize: UInt32, parallelization: UInt32) throws {
        let bytes = header(kind: 0, exponent, blockSize, parallelization)
        #expect(try code { _ = try VaultHeader(of: bytes) } == .altered)
    }

    @Test func aKeyFileWithASaltIsRefused() throws {
        var bytes = header(kind: 0, 0, 0, 0)
        #expect(try VaultHeader(of: bytes).derivation == .none)
        bytes[31] = 1
        #expect(try code { _ = try VaultHeader(of: bytes) } == .altered)
    }

    @Test func anUnknownDerivationIsRefused() throws {
        #expect(try code { _ = try VaultHeader(of: header(kind: 2, 17, 8, 1)) } == .altered)
    }

    @Test(arguments: [2, 256, 0xFFFF] as [UInt16])
    func aNewerVersionIsNamed(version: UInt16) throws {
        let bytes = header(version: version, kind: 1, 17, 8, 1)
        let error = #expect(throws: VaultError.self) { try VaultHeader(of: bytes) }
        #expect(error?.code == .newerVersion)
        #expect(error?.detail == "vault version \(version), this version of Countersign reads version 1")
        #expect(try code { _ = try VaultHeader(of: Array(bytes.prefix(6))) } == .newerVersion)
    }

    @Test func somethingElseIsNotAVault() throws {
        #expect(try code { _ = try VaultHeader(of: header(version: 0, kind: 1, 17, 8, 1)) } == .notAVault)
        #expect(try code { _ = try VaultHeader(of: Array("-----BEGIN".utf8)) } == .notAVault)
        #expect(try code { _ = try VaultHeader(of: Array("X".utf8)) } == .notAVault)
    }
}
