// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Testing

@testable import CountersignVault

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

    private func bearer(_ name: String, _ token: String = "abc.d==", generation: Int = 3) -> [UInt8] {
        [11] + field(field(Array(name.utf8)) + field(Array(token.utf8)) + number(generation, 8))
    }

    private func identity(_ name: String, digestBytes: Int = 32) -> [UInt8] {
        [2] + field(field(Array(name.utf8)) + field([1, 2]) + [UInt8](repeating: 0, count: digestBytes))
    }

    private var interception: [UInt8] { [3] + field(field([1]) + field([2])) }

    private func trust(
        _ host: String, port: Int = 443, leaf: UInt8 = 7, answers: UInt8 = 0, made: Int = 5, until: [UInt8] = [0]
    ) -> [UInt8] {
        [4]
            + field(
                field(Array(host.utf8)) + number(port, 2) + [UInt8](repeating: leaf, count: 32) + [answers]
                    + number(made, 8) + until)
    }

    @Test func allKindsComeBack() throws {
        var contents = try filled()
        for (host, until) in [("printer.example", 1_900_000_000), ("fe80::1", nil)] as [(String, Int64?)] {
            try contents.setTrustException(
                TrustExceptionRecord(
                    host: host, port: 443, leafSHA256: [UInt8](repeating: 9, count: 32), until: until,
                    answers: until == nil, made: 1_800_000_000))
        }
        let encoded = try VaultRecords.encode(contents)
        #expect(try VaultRecords.decode(encoded) == contents)
        #expect(try VaultRecords.encode(try VaultRecords.decode(encoded)) == encoded)
    }

    @Test func theKeyOfTagsComesBack() throws {
        let key = (0..<32).map { UInt8($0) }
        let read = try VaultRecords.decode(payload(interception, [17] + field(field(key))))
        #expect(read.tagKey == Secret(key) && read.recordCount == 2)
        #expect(try VaultRecords.decode(try VaultRecords.encode(read)) == read)
        for malformed in [
            payload([17] + field(field(key.dropLast()))), payload([17] + field(field(key + [0]))),
            payload([17] + field(field(key)), [17] + field(field(key))),
        ] {
            #expect(try code { try VaultRecords.decode(malformed) } == .altered)
        }
    }

    @Test func tokensComeBack() throws {
        let read = try VaultRecords.decode(payload(password("a"), bearer("b"), bearer("c", "x")))
        #expect(read.tokens["b"] == TokenCredential(name: "b", token: Secret(utf8: "abc.d=="), generation: 3))
        #expect(read.recordCount == 3 && read.credentialNames == ["a", "b", "c"])
        #expect(try VaultRecords.decode(try VaultRecords.encode(read)) == read)
        for malformed in [
            payload(password("a"), bearer("a")), payload(bearer("b"), bearer("b")), payload(bearer("b"), bearer("a")),
            payload(bearer("b", "not a token")), payload(bearer("b", "")), payload(bearer("b", generation: 10)),
            payload(bearer("b"), password("a")),
        ] {
            #expect(try code { try VaultRecords.decode(malformed) } == .altered)
        }
    }

    @Test func nothingComesBack() throws {
        #expect(try VaultRecords.decode(try VaultRecords.encode(VaultContents())) == VaultContents())
    }

    @Test func recordsInOrderAreRead() throws {
        let read = try VaultRecords.decode(payload(password("a"), password("b"), identity("a"), interception))
        #expect(read.credentials.keys.sorted() == ["a", "b"])
        #expect(read.recordCount == 4)
    }

    @Test func aTrustExceptionIsReadFieldByField() throws {
        let read = try VaultRecords.decode(
            payload(
                interception, trust("a.example"), trust("a.example", leaf: 8, answers: 1, until: [1] + number(9, 8)),
                trust("a.example", port: 8443), trust("a.example-b"), trust("a.example.b"), trust("fe80::1")))
        #expect(
            read.trustExceptions.prefix(2) == [
                TrustExceptionRecord(
                    host: "a.example", port: 443, leafSHA256: [UInt8](repeating: 7, count: 32), until: nil,
                    answers: false, made: 5),
                TrustExceptionRecord(
                    host: "a.example", port: 443, leafSHA256: [UInt8](repeating: 8, count: 32), until: 9,
                    answers: true, made: 5),
            ])
        #expect(read.recordCount == 7)
        #expect(read.trustExceptions(host: "a.example", port: 443).count == 2)
    }

    @Test func everyCutPayloadIsRefused() throws {
        let encoded = try VaultRecords.encode(try filled()).withBytes { Array($0) }
        for length in 0..<encoded.count {
            let cut = Secret(encoded.prefix(length))
            #expect(try code { _ = try VaultRecords.decode(cut) } == .altered, "\(length) bytes")
        }
    }

    @Test func recordsOfANewerVersionAreRefused() throws {
        #expect(try code { _ = try VaultRecords.decode(payload([255] + field([1, 2, 3]))) } == .newerVersion)
        #expect(try code { _ = try VaultRecords.decode(payload(format: 2)) } == .newerVersion)
    }

    @Test func constraintsInAnotherFormAreRefused() throws {
        let table: [(String, Secret)] = [
            ("a name twice", payload(password("a"), password("a"))),
            ("names out of order", payload(password("b"), password("a"))),
            ("kinds out of order", payload(identity("a"), password("b"))),
            ("a password behind the CA", payload(interception, password("a"))),
            ("two CAs", payload(interception, interception)),
            ("a CA behind a trust decision", payload(trust("a"), interception)),
            ("a trust decision twice", payload(trust("a"), trust("a", answers: 1))),
            ("leaves out of order", payload(trust("a", leaf: 8), trust("a", leaf: 7))),
            ("ports out of order", payload(trust("a", port: 8443), trust("a", port: 443))),
            ("hosts out of order", payload(trust("b"), trust("a"))),
            ("no host", payload(trust(""))),
            ("a host in upper case", payload(trust("A.example"))),
            ("a wildcard for a host", payload(trust("*.example"))),
            ("a host of 254 bytes", payload(trust(String(repeating: "a", count: 254)))),
            ("port 0", payload(trust("a", port: 0))),
            ("neither yes nor no", payload(trust("a", answers: 2))),
            ("an end that is neither there nor not", payload(trust("a", until: [2] + number(9, 8)))),
            ("an end behind none", payload(trust("a", until: [0] + number(9, 8)))),
            ("made before 1970", payload(trust("a", made: -1))),
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

    @Test func aVaultHasAtMostTenThousandRecords() throws {
        var contents = VaultContents()
        for index in 0..<VaultLimits.records {
            try contents.setCredential(name: "c\(index)", user: "u", password: Secret([1]))
        }
        #expect(try VaultRecords.decode(try VaultRecords.encode(contents)) == contents)
        try contents.setCredential(name: "one-more", user: "u", password: Secret([1]))
        #expect(try code { _ = try VaultRecords.encode(contents) } == .tooLarge)
        #expect(try code { _ = try VaultRecords.decode(payload(count: 10_001)) } == .tooLarge)
    }

    @Test func aVaultHasAtMostSixteenMebibytes() throws {
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

    /// The order of the table is that of the records, and each kind stands in it once.
    @Test func theTableHasEachKind() {
        #expect(RecordFormat.all.map(\.kind.rawValue) == RecordKind.allCases.map(\.rawValue).sorted())
    }
}
