// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

/// The vault's records of a device's compliance, and of a wipe that has begun.
@Suite struct ComplianceRecordTests {
    private static let refused = ComplianceRecord(
        name: "work", homeAccount: "object.tenant", status: 1, title: "Gerät nicht verwaltet",
        message: "Switch on the screen lock.", page: "https://mdm.corp.example/comply", checked: 1_800_000_000,
        confirmed: 1_799_000_000)
    private static let compliant = ComplianceRecord(name: "work", homeAccount: "", checked: 0)

    private static func wipe(sites: Int = 2) -> WipeRecord {
        WipeRecord(
            name: "work", identifier: "1f", begun: 1_800_000_000,
            sites: (0..<sites).map { "https://site\($0).corp.example answer=bearer credential=work" },
            sessionGroup: "office", sessionHost: "login.corp.example")
    }

    private static func signedIn() throws -> VaultContents {
        var contents = VaultContents()
        try contents.setSignIn(
            SignInRecord(
                name: "work", profile: "{}", source: "", issuer: "https://id.example", subject: "", account: "",
                scope: "", sites: [], refreshToken: nil, identityToken: nil, signedIn: 1, expires: 0),
            accessToken: Secret(utf8: "t"))
        return contents
    }

    @Test(arguments: [refused, compliant])
    func complianceIsDecodedAsEncoded(record: ComplianceRecord) throws {
        var contents = try Self.signedIn()
        try contents.setCompliance(record)
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read == contents)
        #expect(read.compliance == ["work": record])
        #expect(try VaultRecords.encode(read) == encoded)
    }

    /// Their records end at `checked`.
    @Test(arguments: [(refused, 0), (compliant, 7)] as [(ComplianceRecord, Int64)])
    func theRecordsOfEarlierVersionsAreRead(record: ComplianceRecord, confirmed: Int64) throws {
        var contents = try Self.signedIn()
        var record = record
        (record.checked, record.confirmed) = (7, confirmed)
        try contents.setCompliance(record)
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        bytes.removeLast(8)
        // The length of the record, which is the last: after its kind, and before the name.
        let name: [UInt8] = [0, 0, 0, 4] + "work".utf8 + [0, 0, 0, UInt8(record.homeAccount.utf8.count)]
        let start = try #require(bytes.indices.last { bytes[$0...].starts(with: name) })
        bytes[start - 1] -= 8
        #expect(try VaultRecords.decode(Secret(bytes)).compliance == ["work": record])
    }

    /// The sign-in may be gone already, and may have had as many sites as a sign-in can have.
    @Test(arguments: [0, 2, 1088])
    func aWipeIsDecodedAsEncoded(sites: Int) throws {
        var contents = VaultContents()
        try contents.setWipe(Self.wipe(sites: sites))
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read.wipes == ["work": Self.wipe(sites: sites)])
        #expect(try VaultRecords.encode(read) == encoded)
    }

    @Test func aWipeOfMoreSitesThanASignInCanHaveIsRefused() throws {
        var contents = VaultContents()
        #expect(try code { try contents.setWipe(Self.wipe(sites: 1089)) } == .invalidRecord)
        #expect(contents.wipes.isEmpty)
    }

    @Test func everyCutRecordIsRefused() throws {
        var contents = try Self.signedIn()
        try contents.setCompliance(Self.refused)
        try contents.setWipe(Self.wipe())
        let encoded = try VaultRecords.encode(contents).withBytes { Array($0) }
        for length in 0..<encoded.count {
            let cut = Secret(encoded.prefix(length))
            #expect(try code { _ = try VaultRecords.decode(cut) } == .altered, "\(length) bytes")
        }
    }

    @Test func complianceHasItsLimits() throws {
        let table: [(String, (inout ComplianceRecord) -> Void)] = [
            ("an unknown status", { $0.status = 6 }), ("a title of two lines", { $0.title = "a\nb" }),
            ("a message of two lines", { $0.message = "a\nb" }), ("a page with a null byte", { $0.page = "a\0" }),
            ("a time before 1970", { $0.checked = -1 }), ("a confirmation before 1970", { $0.confirmed = -1 }),
        ]
        for (what, change) in table {
            var contents = try Self.signedIn()
            var record = Self.refused
            change(&record)
            #expect(try code { try contents.setCompliance(record) } == .invalidRecord, "\(what)")
            #expect(contents.compliance.isEmpty, "\(what)")
        }
    }
}
