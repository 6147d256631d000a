// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct ProfileRecordTests {
    private static func digest(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 32) }

    private static func plain(_ identifier: String = "example.corp") -> ProfileRecord {
        ProfileRecord(
            identifier: identifier, name: "Corp", organization: "", signer: nil, installed: 1_800_000_000)
    }

    private static func whole() -> ProfileRecord {
        var record = ProfileRecord(
            identifier: "example.corp", name: "Corp — Ämter", organization: "Example Corporation",
            signer: .init(subject: "CN=MDM,O=Example", sha256: digest(1), isTrusted: true), installed: 1_800_000_000,
            owner: .init(signIn: "work", isPending: true))
        record.anchors = [
            .init(sha256: digest(2), file: "Certs/anchors/profile.corp.0202.pem"), .init(sha256: digest(3), file: nil),
        ]
        record.identities = [
            .init(name: "laptop", leafSHA256: digest(4), isBrought: true),
            .init(name: "phone", leafSHA256: digest(5), isBrought: false),
        ]
        record.enrollment = .init(name: "vpn", server: "https://est.example/corp")
        record.journal = .init(
            written: [
                .init(name: "Certs/anchors/profile.corp.0202.pem", bytes: [1, 2, 3]),
                .init(name: "Certs/identities/laptop.pem", bytes: []),
            ], removed: ["Certs/identities/old.pem"], endsRecord: true)
        return record
    }

    @Test(arguments: [whole(), plain()])
    func aProfileIsDecodedAsEncoded(record: ProfileRecord) throws {
        var contents = try filled()
        let others = contents.recordCount
        try contents.setProfile(record)
        try contents.setProfile(Self.plain("example.another"))
        #expect(contents.recordCount == others + 2)
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read == contents && read.recordCount == contents.recordCount)
        #expect(read.profiles["example.corp"] == record)
        #expect(try VaultRecords.encode(read) == encoded)
    }

    @Test func contentsWithoutProfilesAreEncodedAsBefore() throws {
        var contents = try filled()
        let before = contents
        try contents.setProfile(Self.whole())
        let removed = [contents.removeProfile("example.corp"), contents.removeProfile("example.corp")]
        #expect(removed == [true, false])
        #expect(contents.generation == before.generation + 2)
        contents.generation = before.generation
        #expect(try VaultRecords.encode(contents) == VaultRecords.encode(before))
    }

    @Test func everyCutProfileIsRefused() throws {
        var contents = VaultContents()
        try contents.setProfile(Self.whole())
        let encoded = try VaultRecords.encode(contents).withBytes { Array($0) }
        for length in 0..<encoded.count {
            let cut = Secret(encoded.prefix(length))
            #expect(try code { _ = try VaultRecords.decode(cut) } == .altered, "\(length) bytes")
        }
    }

    /// Changes each byte: decoding fails, or gives another record whose only encoding is the changed one.
    @Test func everyChangedByteIsRefusedOrMeansSomethingElse() throws {
        var contents = VaultContents()
        try contents.setProfile(Self.whole())
        let encoded = try VaultRecords.encode(contents).withBytes { Array($0) }
        var refused = 0
        for index in encoded.indices {
            for bit in [0x01, 0x20, 0x80] as [UInt8] {
                var bytes = encoded
                bytes[index] ^= bit
                guard let read = try? VaultRecords.decode(Secret(bytes)) else {
                    refused += 1
                    continue
                }
                #expect(try VaultRecords.encode(read) == Secret(bytes), "byte \(index)")
                #expect(read.profiles.values.allSatisfy { VaultLimits.fault(of: $0) == nil }, "byte \(index)")
            }
        }
        #expect(refused > 200)
    }

    @Test func profilesOutOfOrderAreRefused() throws {
        var contents = VaultContents()
        try contents.setProfile(Self.plain("a"))
        try contents.setProfile(Self.plain("b"))
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        let places = bytes.indices.filter { $0 >= 4 && bytes[$0 - 4..<$0].elementsEqual([0, 0, 0, 1]) }
        let letters = places.filter { bytes[$0] == UInt8(ascii: "a") || bytes[$0] == UInt8(ascii: "b") }
        try #require(letters.count == 2)
        bytes.swapAt(letters[0], letters[1])
        #expect(try code { _ = try VaultRecords.decode(Secret(bytes)) } == .altered)
    }

    @Test func aProfileHasItsLimits() throws {
        func refusal(_ change: (inout ProfileRecord) -> Void, _ identifier: String = "a") throws -> VaultError.Code? {
            var record = Self.plain(identifier)
            change(&record)
            var contents = VaultContents()
            let refusal = try code { try contents.setProfile(record) }
            #expect(contents.generation == (refusal == nil ? 2 : 1))
            return refusal
        }
        #expect(try refusal { _ in } == nil)
        #expect(try refusal({ _ in }, String(repeating: "a", count: 256)) == nil)
        for identifier in ["", "a b", "ä", "a\n", String(repeating: "a", count: 257)] {
            #expect(try refusal({ _ in }, identifier) == .invalidRecord, "\(identifier)")
        }
        let anchor = ProfileRecord.Anchor(sha256: Self.digest(1), file: nil)
        let table: [(String, (inout ProfileRecord) -> Void)] = [
            ("no name", { $0.name = "" }), ("a name of two lines", { $0.name = "a\nb" }),
            ("a long organization", { $0.organization = String(repeating: "a", count: 1025) }),
            ("a time before 1970", { $0.installed = -1 }),
            ("a signer's short digest", { $0.signer = .init(subject: "CN=a", sha256: [1], isTrusted: false) }),
            ("an owner that is a path", { $0.owner = .init(signIn: "../a", isPending: false) }),
            ("too many anchors", { $0.anchors = Array(repeating: anchor, count: 65) }),
            ("an anchor's short digest", { $0.anchors = [.init(sha256: [], file: nil)] }),
            ("a file elsewhere", { $0.anchors = [.init(sha256: Self.digest(1), file: "vault/vault.pem")] }),
            ("a file in a folder", { $0.anchors = [.init(sha256: Self.digest(1), file: "Certs/anchors/a/b.pem")] }),
            ("a hidden file", { $0.journal = .init(removed: ["Certs/anchors/.pem"]) }),
            ("a file above", { $0.journal = .init(removed: ["Certs/anchors/../a.pem"]) }),
            ("a file of another kind", { $0.journal = .init(written: [.init(name: "Certs/anchors/a", bytes: [])]) }),
            (
                "an identity without a name",
                { $0.identities = [.init(name: "", leafSHA256: Self.digest(1), isBrought: true)] }
            ),
            ("an enrolment without a server", { $0.enrollment = .init(name: "a", server: "") }),
        ]
        for (what, change) in table { #expect(try refusal(change) == .invalidRecord, "\(what)") }
    }
}
