// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

/// The vault's records of the permission to give out an access token.
@Suite struct TokenPermissionTests {
    private static func record(issuer: String = "https://id.example", subject: String = "1") -> SignInRecord {
        SignInRecord(
            name: "work", profile: "{}", source: "", issuer: issuer, subject: subject, account: "", scope: "",
            sites: [], refreshToken: nil, identityToken: nil, signedIn: 1, expires: 0)
    }

    private static func permitted() throws -> VaultContents {
        var contents = VaultContents()
        try contents.setSignIn(record(), accessToken: Secret(utf8: "t"))
        try contents.permitToken(of: "work", at: 1_800_000_000)
        return contents
    }

    @Test func aPermissionIsDecodedAsEncoded() throws {
        let contents = try Self.permitted()
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read == contents)
        #expect(read.tokenPermissions == ["work": TokenPermission(name: "work", permitted: 1_800_000_000)])
        #expect(try VaultRecords.encode(read) == encoded)
    }

    /// So does one of an earlier version.
    @Test func aVaultWithoutAPermissionHasNoRecordOfIt() throws {
        var contents = try Self.permitted()
        let with = try VaultRecords.encode(contents)
        #expect(contents.denyToken(of: "work") && !contents.denyToken(of: "work"))
        let without = try VaultRecords.encode(contents)
        // 1 byte kind, 4 bytes length, 4 bytes length of the name, the name, 8 bytes.
        #expect(without.count == with.count - 21)
        #expect(try VaultRecords.decode(without).tokenPermissions.isEmpty)
    }

    @Test func onlyASignInHasAPermission() throws {
        var contents = VaultContents()
        try contents.setToken(name: "api", token: Secret(utf8: "t"))
        let error = #expect(throws: VaultError.self) { try contents.permitToken(of: "api", at: 1) }
        #expect(error?.code == .invalidRecord)
        var bytes = try VaultRecords.encode(try Self.permitted()).withBytes { Array($0) }
        let last = try #require(bytes.indices.last { bytes[$0...].starts(with: "work".utf8) })
        bytes[last] = UInt8(ascii: "x")
        #expect(throws: VaultError.self) { try VaultRecords.decode(Secret(bytes)) }
    }

    @Test func aSecondPermissionChangesNothing() throws {
        var contents = try Self.permitted()
        let before = contents
        try contents.permitToken(of: "work", at: 7)
        #expect(contents == before)
    }

    /// The same person may sign in again, and the token may be renewed.
    @Test(
        arguments: [
            (record(), true), (record(issuer: "https://other.example"), false), (record(subject: "2"), false),
        ])
    func itIsForOnePersonAtOneProvider(next: SignInRecord, stays: Bool) throws {
        var contents = try Self.permitted()
        try contents.setSignIn(next, accessToken: Secret(utf8: "u"))
        #expect((contents.tokenPermissions["work"] != nil) == stays)
    }

    @Test func itEndsWithTheSignIn() throws {
        var contents = try Self.permitted()
        contents.removeSignIn(named: "work")
        #expect(contents.tokenPermissions.isEmpty)
        #expect(try VaultRecords.decode(try VaultRecords.encode(contents)) == contents)
    }
}
