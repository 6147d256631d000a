// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct EnrollmentRecordTests {
    private static func enrollment(_ name: String = "laptop") -> EnrollmentRecord {
        EnrollmentRecord(
            name: name, server: "https://est.example/corp", subject: "CN=jdoe", keySpecification: "ec-p256",
            anchors: [[1, 2]])
    }

    private static func whole() -> EnrollmentRecord {
        var record = EnrollmentRecord(
            name: "laptop", server: "https://est.example:8443", subject: "CN=jdoe,O=Acmé",
            alternativeNames: ["email:jdoe@acme.example", "dns:laptop.example"], keySpecification: "rsa-3072",
            anchors: [[1], [2, 3]], credential: "enrollment", identity: "bootstrap")
        record.chain = [[4, 5], [6]]
        record.previous = PreviousIdentity(privateKey: Secret(utf8: "canary-old"), chain: [[7]])
        record.refusedCredential = 3
        record.failures = 4
        record.lastFailure = 1_800_000_000
        return record
    }

    private static func pending(_ state: PendingEnrollment.State) -> PendingEnrollment {
        var record = PendingEnrollment(name: "laptop", privateKey: Secret(utf8: "canary-new"), created: 1_800_000_000)
        record.state = state
        record.retryAt = 1_800_000_060
        record.attempts = 2
        record.request = [8, 9]
        record.plan = whole()
        return record
    }

    @Test(arguments: [whole(), enrollment()])
    func anEnrolmentIsDecodedAsEncoded(record: EnrollmentRecord) throws {
        var contents = try filled()
        try contents.setEnrollment(record)
        let encoded = try VaultRecords.encode(contents)
        #expect(try VaultRecords.decode(encoded) == contents)
        #expect(try VaultRecords.encode(try VaultRecords.decode(encoded)) == encoded)
    }

    @Test(arguments: [EnrollmentRecord.ServerAnchors.own([[9], [10, 11]]), .implicit, .same])
    func anchorsOfTheServerAreDecodedAsEncoded(anchors: EnrollmentRecord.ServerAnchors) throws {
        var contents = try filled()
        var (first, second) = (Self.enrollment("a"), Self.enrollment())
        first.serverAnchors = anchors
        try contents.setEnrollment(first)
        try contents.setEnrollment(second)
        var pending = Self.pending(.requested)
        second.serverAnchors = anchors
        pending.plan = second
        try contents.setPendingEnrollment(pending)
        let encoded = try VaultRecords.encode(contents)
        let decoded = try VaultRecords.decode(encoded)
        #expect(decoded == contents && decoded.recordCount == contents.recordCount)
        #expect(decoded.pendingEnrollments["laptop"]?.plan?.serverAnchors == anchors)
        #expect(try VaultRecords.encode(decoded) == encoded)
        first.serverAnchors = .own([])
        #expect(throws: VaultError(.invalidRecord, "")) { try contents.setEnrollment(first) }
    }

    @Test func theSignInOfAnEnrolmentIsDecodedAsEncoded() throws {
        var contents = try filled()
        var record = Self.whole()
        var pending = Self.pending(.requested)
        pending.plan?.owner = EnrollmentRecord.Owner(signIn: "first")
        record.owner = EnrollmentRecord.Owner(signIn: "second")
        record.owner?.refusedToken = 7
        try contents.setEnrollment(record)
        try contents.setPendingEnrollment(pending)
        let encoded = try VaultRecords.encode(contents)
        let decoded = try VaultRecords.decode(encoded)
        #expect(decoded == contents && decoded.recordCount == contents.recordCount)
        #expect(decoded.enrollments["laptop"]?.owner == record.owner)
        #expect(decoded.pendingEnrollments["laptop"]?.plan?.owner == pending.plan?.owner)
        #expect(try VaultRecords.encode(decoded) == encoded)
    }

    @Test(arguments: [PendingEnrollment.State.requested, .issued(chain: [[1], [2]])])
    func aPendingEnrolmentIsDecodedAsEncoded(state: PendingEnrollment.State) throws {
        var contents = try filled()
        try contents.setPendingEnrollment(Self.pending(state))
        #expect(try VaultRecords.decode(try VaultRecords.encode(contents)) == contents)
    }

    @Test func aRequestForAKeyInATokenIsDecodedAsEncoded() throws {
        var contents = try filled()
        let token = TokenKey(name: "laptop", uri: "pkcs11:token=card;id=%01", pin: Secret(utf8: "canary-pin"))
        var pending = PendingEnrollment(token: token, created: 1_800_000_000)
        pending.plan = Self.enrollment()
        try contents.setPendingEnrollment(pending)
        #expect(contents.pendingEnrollments["laptop"]?.token == token)
        contents.refusePendingPIN(of: token)
        #expect(contents.pendingEnrollments["laptop"]?.token?.isPINRefused == true)
        let decoded = try VaultRecords.decode(try VaultRecords.encode(contents))
        #expect(decoded == contents && decoded.recordCount == contents.recordCount)
        let keyless = PendingEnrollment(name: "laptop", privateKey: PendingEnrollment.keyInToken, created: 1)
        #expect(throws: VaultError(.invalidRecord, "")) { try contents.setPendingEnrollment(keyless) }
    }

    @Test func everyCutPayloadIsRefused() throws {
        var contents = VaultContents()
        try contents.setEnrollment(Self.whole())
        try contents.setPendingEnrollment(Self.pending(.issued(chain: [[1], [2]])))
        let encoded = try VaultRecords.encode(contents).withBytes { Array($0) }
        for length in 0..<encoded.count {
            let cut = Secret(encoded.prefix(length))
            #expect(try code { _ = try VaultRecords.decode(cut) } == .altered, "\(length) bytes")
        }
    }

    /// Changes each byte: decoding fails, or gives another record whose only encoding is the changed one.
    @Test func everyChangedByteIsRefusedOrMeansSomethingElse() throws {
        var contents = VaultContents()
        try contents.setEnrollment(Self.whole())
        try contents.setPendingEnrollment(Self.pending(.issued(chain: [[1], [2]])))
        let encoded = try VaultRecords.encode(contents).withBytes { Array($0) }
        var refused = 0
        for index in encoded.indices {
            var bytes = encoded
            bytes[index] ^= 0x80
            do {
                let read = try VaultRecords.decode(Secret(bytes))
                #expect(try VaultRecords.encode(read) == Secret(bytes), "byte \(index)")
            } catch {
                refused += 1
            }
        }
        #expect(refused > 100)
    }

    @Test func recordsOutOfOrderAreRefused() throws {
        var both = VaultContents()
        try both.setEnrollment(Self.enrollment("a"))
        try both.setEnrollment(Self.enrollment("b"))
        var bytes = try VaultRecords.encode(both).withBytes { Array($0) }
        let (first, second) = try #require(bytes.indices(ofName: "a", "b"))
        bytes.swapAt(first, second)
        #expect(try code { _ = try VaultRecords.decode(Secret(bytes)) } == .altered)
    }

    @Test func anEnrolmentHasItsLimits() throws {
        func refusal(_ change: (inout EnrollmentRecord) -> Void) throws -> VaultError.Code? {
            var record = Self.whole()
            change(&record)
            var contents = VaultContents()
            let refusal = try code { try contents.setEnrollment(record) }
            #expect(contents.generation == (refusal == nil ? 2 : 1))
            return refusal
        }
        #expect(try refusal { _ in } == nil)
        #expect(try refusal { $0.server = String(repeating: "a", count: 2048) } == nil)
        #expect(try refusal { $0.chain = [] } == nil)
        #expect(try refusal { $0.anchors = Array(repeating: [1], count: 32) } == nil)
        let table: [(String, (inout EnrollmentRecord) -> Void)] = [
            ("a long server", { $0.server = String(repeating: "a", count: 2049) }),
            ("no server", { $0.server = "" }),
            ("a server of two lines", { $0.server = "https://a\nb" }),
            ("no subject", { $0.subject = "" }),
            ("a subject with a zero byte", { $0.subject = "CN=\u{0}" }),
            ("no kind of key", { $0.keySpecification = "" }),
            ("too many names", { $0.alternativeNames = Array(repeating: "dns:a", count: 65) }),
            ("an empty name", { $0.alternativeNames = [""] }),
            ("too many anchors", { $0.anchors = Array(repeating: [1], count: 33) }),
            ("an empty certificate", { $0.chain = [[]] }),
            ("a large certificate", { $0.chain = [[UInt8](repeating: 0, count: 65_537)] }),
            ("a credential that is a path", { $0.credential = "../a" }),
            ("an identity without a name", { $0.identity = "" }),
            ("a kept identity without a chain", { $0.previous = PreviousIdentity(privateKey: Secret([1]), chain: []) }),
            ("a kept identity without a key", { $0.previous = PreviousIdentity(privateKey: Secret([]), chain: [[1]]) }),
            ("a generation past 63 bits", { $0.refusedCredential = .max }),
            ("a sign-in without an identifier", { $0.owner = EnrollmentRecord.Owner(signIn: "") }),
            (
                "a refused token past 63 bits",
                { record in
                    record.owner = EnrollmentRecord.Owner(signIn: "a")
                    record.owner?.refusedToken = .max
                }
            ),
            ("a failure before 1970", { $0.lastFailure = -1 }),
        ]
        for (what, change) in table { #expect(try refusal(change) == .invalidRecord, "\(what)") }
    }

    @Test func aPendingEnrolmentHasItsLimits() throws {
        func refusal(_ record: PendingEnrollment) throws -> VaultError.Code? {
            var contents = VaultContents()
            return try code { try contents.setPendingEnrollment(record) }
        }
        #expect(try refusal(Self.pending(.requested)) == nil)
        #expect(try refusal(Self.pending(.issued(chain: []))) == .invalidRecord)
        var large = Self.pending(.requested)
        large.request = [UInt8](repeating: 0, count: 65_537)
        #expect(try refusal(large) == .invalidRecord)
        #expect(try refusal(.init(name: "a", privateKey: Secret([]), created: 0)) == .invalidRecord)
        #expect(try refusal(.init(name: "a", privateKey: Secret([1]), created: -1)) == .invalidRecord)
        #expect(try refusal(.init(name: ".a", privateKey: Secret([1]), created: 0)) == .invalidRecord)
        var planned = Self.pending(.requested)
        planned.plan = Self.enrollment("other")
        #expect(try refusal(planned) == .invalidRecord)
        planned.plan?.server = ""
        #expect(try refusal(planned) == .invalidRecord)
    }

    @Test func whatWasRemovedIsGone() throws {
        var contents = VaultContents()
        try contents.setEnrollment(Self.whole())
        try contents.setPendingEnrollment(Self.pending(.requested))
        #expect(contents.recordCount == 2)
        let removed = [
            contents.removeEnrollment(named: "laptop"), contents.removePendingEnrollment(named: "laptop"),
            contents.removeEnrollment(named: "laptop"), contents.removePendingEnrollment(named: "laptop"),
        ]
        #expect(removed == [true, true, false, false])
        #expect(contents.recordCount == 0)
        #expect(contents.generation == 5)
    }
}

extension [UInt8] {
    /// The positions of the one-letter names, each after a length of 1.
    fileprivate func indices(ofName first: Character, _ second: Character) -> (Int, Int)? {
        func index(_ name: Character) -> Int? {
            guard let letter = name.asciiValue else { return nil }
            return indices.first { $0 >= 4 && Array(self[$0 - 4...$0]) == [0, 0, 0, 1, letter] }
        }
        guard let first = index(first), let second = index(second) else { return nil }
        return (first, second)
    }
}
