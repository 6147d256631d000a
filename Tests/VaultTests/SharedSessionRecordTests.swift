// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct SharedSessionRecordTests {
    private static let key = SharedSession.Key(group: "corp", host: "login.example")

    private static func cookie(_ name: String, expires: Int64? = nil, domain: String? = nil) -> Cookie {
        Cookie(
            .init(name: name, domain: domain ?? key.host, isHostOnly: domain == nil, path: "/"),
            value: Secret(utf8: expires == nil ? "" : "canary"), isSecure: expires != nil, isHTTPOnly: domain == nil,
            sameSite: .lax, expires: expires, stored: 1_800_000_000)
    }

    private static func filledWithSessions() throws -> VaultContents {
        var contents = try filled()
        try contents.changeSession(
            key, [.set(cookie("a", expires: 1_900_000_000)), .set(cookie("b", domain: "example"))])
        try contents.changeSession(.init(group: "corp-2", host: key.host), [.set(cookie("a"))])
        return contents
    }

    @Test func sessionsAreDecodedAsEncoded() throws {
        let contents = try Self.filledWithSessions()
        let others = try filled().recordCount
        #expect(contents.sessions.count == 2 && contents.recordCount == others + 2)
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read == contents && read.sessions[Self.key]?.cookies.map(\.name) == ["a", "b"])
        #expect(read.sessions[Self.key]?.cookies.first == Self.cookie("a", expires: 1_900_000_000))
        #expect(try VaultRecords.encode(read) == encoded)
    }

    @Test func everyCutSessionIsRefused() throws {
        let bytes = try VaultRecords.encode(Self.filledWithSessions()).withBytes { Array($0) }
        for count in bytes.indices {
            #expect(try code { _ = try VaultRecords.decode(Secret(bytes.prefix(count))) } == .altered, "\(count)")
        }
    }

    /// A byte that is changed in a session gives an error or another session, and never one that is not valid.
    @Test func aChangedSessionIsValidOrRefused() throws {
        var contents = VaultContents()
        try contents.changeSession(Self.key, [.set(Self.cookie("a", expires: 1_900_000_000))])
        let bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        var refused = 0
        for index in bytes.indices {
            for bit in [0x01, 0x20, 0x80] as [UInt8] {
                var changed = bytes
                changed[index] ^= bit
                guard let read = try? VaultRecords.decode(Secret(changed)) else {
                    refused += 1
                    continue
                }
                #expect(read.sessions.values.allSatisfy { VaultLimits.fault(of: $0) == nil }, "\(index)")
                #expect(try VaultRecords.encode(read) == Secret(changed), "\(index)")
            }
        }
        #expect(refused > bytes.count)
    }

    @Test func aSessionEndsWithItsLastCookie() throws {
        var contents = try Self.filledWithSessions()
        let identities = try #require(contents.sessions[Self.key]).cookies.map(\.identity)
        let removed = try contents.changeSession(Self.key, identities.map { .remove($0) })
        #expect(removed == 2)
        #expect(contents.sessions[Self.key] == nil && contents.sessions.count == 1)
        let generation = contents.generation
        let again = try contents.changeSession(Self.key, identities.map { .remove($0) })
        #expect(again == 0 && contents.generation == generation)
    }

    @Test func sessionsAreRemovedByGroupAndHost() throws {
        func left(_ group: String?, _ host: String?) throws -> [String] {
            var contents = try Self.filledWithSessions()
            let count = contents.removeSessions(group: group, host: host)
            #expect(count + contents.sessions.count == 2)
            return contents.sessions.keys.map(\.group).sorted()
        }
        #expect(try left("corp", nil) == ["corp-2"] && left("corp", "other.example") == ["corp", "corp-2"])
        #expect(try left("corp-2", Self.key.host) == ["corp"] && left(nil, Self.key.host) == [])
        #expect(try left(nil, nil) == [] && left("other", nil) == ["corp", "corp-2"])
    }

    @Test func changesToSessionsAreToldFromOthers() throws {
        let known = try Self.filledWithSessions()
        #expect(known.differsInSessionsOnly(from: known))
        var changed = known
        changed.removeSessions(group: nil, host: nil)
        #expect(changed.differsInSessionsOnly(from: known))
        try changed.setCredential(name: "more", user: "jdoe", password: Secret(utf8: "canary"))
        #expect(!changed.differsInSessionsOnly(from: known))
    }

    @Test(arguments: [
        SharedSession.Key(group: "", host: "login.example"), .init(group: "a b", host: "login.example"),
        .init(group: "corp", host: ""), .init(group: "corp", host: "Login.example"),
        .init(group: "corp", host: "login.example\r\n"),
    ])
    func otherNamesNameNoSession(key: SharedSession.Key) throws {
        var contents = VaultContents()
        #expect(try code { try contents.changeSession(key, []) } == .invalidRecord)
        #expect(contents == VaultContents())
    }
}
