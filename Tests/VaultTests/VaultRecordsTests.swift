// SPDX-License-Identifier: Apache-2.0

import Challenges
import Cryptography
import Testing

@testable import Vault

@Suite struct VaultRecordsTests {
    private func number(_ value: Int, _ size: Int = 4) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private func field(_ bytes: some Collection<UInt8>) -> [UInt8] { number(bytes.count) + bytes }

    private func payload(format: Int = 1, generation: Int = 9, count: Int? = nil, _ records: [UInt8]...) -> Secret {
        Secret(number(format, 2) + number(generation, 8) + number(count ?? records.count) + records.flatMap { $0 })
    }

    private func password(
        _ name: String, user: [UInt8] = [0x75], password: [UInt8] = [0x70], generation: Int = 3, more: [UInt8] = []
    ) -> [UInt8] {
        [1] + field(field(Array(name.utf8)) + field(user) + field(password) + number(generation, 8) + more)
    }

    private func identity(_ name: String, digestBytes: Int = 32) -> [UInt8] {
        [2] + field(field(Array(name.utf8)) + field([1, 2]) + [UInt8](repeating: 0, count: digestBytes))
    }

    private var interception: [UInt8] { [3] + field(field([1]) + field([2])) }

    @Test func allKindsComeBack() throws {
        let contents = try filled()
        let encoded = try VaultRecords.encode(contents)
        #expect(try VaultRecords.decode(encoded) == contents)
        #expect(try VaultRecords.encode(try VaultRecords.decode(encoded)) == encoded)
    }

    @Test func nothingComesBack() throws {
        #expect(try VaultRecords.decode(try VaultRecords.encode(VaultContents())) == VaultContents())
    }

    @Test func recordsInOrderAreRead() throws {
        let read = try VaultRecords.decode(payload(password("a"), password("b"), identity("a"), interception))
        #expect(read.credentials.keys.sorted() == ["a", "b"])
        #expect(read.recordCount == 4)
    }

    @Test func everyCutPayloadIsRefused() throws {
        let encoded = try VaultRecords.encode(try filled()).withBytes { Array($0) }
        for length in 0..<encoded.count {
            let cut = Secret(encoded.prefix(length))
            #expect(try code { _ = try VaultRecords.decode(cut) } == .altered, "\(length) bytes")
        }
    }

    @Test func whatANewerCountersignWroteIsRefusedWhole() throws {
        #expect(try code { _ = try VaultRecords.decode(payload([4] + field([1, 2, 3]))) } == .newerVersion)
        #expect(try code { _ = try VaultRecords.decode(payload(format: 2)) } == .newerVersion)
    }

    @Test func whatWeWouldNotWriteIsRefused() throws {
        let table: [(String, Secret)] = [
            ("a name twice", payload(password("a"), password("a"))),
            ("names out of order", payload(password("b"), password("a"))),
            ("kinds out of order", payload(identity("a"), password("b"))),
            ("a password behind the CA", payload(interception, password("a"))),
            ("two CAs", payload(interception, interception)),
            ("more records than said", payload(count: 1, password("a"), password("b"))),
            ("fewer records than said", payload(count: 3, password("a"), password("b"))),
            ("a longer record", payload(password("a", more: [0]))),
            ("a short digest", payload(identity("a", digestBytes: 31))),
            ("a long digest", payload(identity("a", digestBytes: 33))),
            ("no name", payload(password(""))),
            ("a path for a name", payload(password("../a"))),
            ("a user that is not UTF-8", payload(password("a", user: [0xFF]))),
            ("a user with a line break", payload(password("a", user: [0x75, 0x0A]))),
            ("an empty password", payload(password("a", password: []))),
            ("a credential of the future", payload(password("a", generation: 10))),
            ("a generation past 63 bits", payload(generation: -1)),
            (
                "a field longer than its record",
                payload([1] + field(number(0xFFFF_FFFF) + [0x61]))
            ),
        ]
        for (what, payload) in table {
            #expect(try code { _ = try VaultRecords.decode(payload) } == .altered, "\(what)")
        }
    }

    @Test func tenThousandRecordsAreTheMost() throws {
        var contents = VaultContents()
        for index in 0..<VaultLimits.records {
            try contents.setCredential(name: "c\(index)", user: "u", password: Secret([1]))
        }
        #expect(try VaultRecords.decode(try VaultRecords.encode(contents)) == contents)
        try contents.setCredential(name: "one-more", user: "u", password: Secret([1]))
        #expect(try code { _ = try VaultRecords.encode(contents) } == .tooLarge)
        #expect(try code { _ = try VaultRecords.decode(payload(count: 10_001)) } == .tooLarge)
    }

    @Test func sixteenMebibytesAreTheMost() throws {
        // 255 keys of 64 KiB, then one that fills the file to the last byte.
        var contents = VaultContents()
        let digest = [UInt8](repeating: 0, count: 32)
        let key = Secret(count: VaultLimits.keyBytes) { _ in }
        for index in 100..<355 {
            try contents.setIdentityKey(IdentityKey(name: "k\(index)", privateKey: key, leafSHA256: digest))
        }
        let used = try VaultRecords.encode(contents).count + VaultHeader.bytes + AESGCM.tagBytes
        let left = VaultLimits.fileBytes - used - (1 + 4 + 4 + 4 + 4 + 32)
        func last(_ bytes: Int) throws -> Secret {
            var contents = contents
            try contents.setIdentityKey(
                IdentityKey(name: "k999", privateKey: Secret(count: bytes) { _ in }, leafSHA256: digest))
            return try VaultRecords.encode(contents)
        }
        #expect(try last(left).count + VaultHeader.bytes + AESGCM.tagBytes == VaultLimits.fileBytes)
        #expect(try code { _ = try last(left + 1) } == .tooLarge)
    }
}
