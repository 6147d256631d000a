// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct SignInRecordTests {
    private static let access = Secret(utf8: "canary-access")

    private static func plain(_ name: String = "work") -> SignInRecord {
        SignInRecord(
            name: name, profile: "{}", source: "", issuer: "https://id.example", subject: "", account: "", scope: "",
            sites: [], refreshToken: nil, identityToken: nil, signedIn: 0, expires: 0)
    }

    private static func whole() -> SignInRecord {
        var record = SignInRecord(
            name: "work", profile: "{\"issuer\": \"https://id.example\"\n}", source: "https://acme.example/p.json",
            issuer: "https://id.example", subject: "248289761001", account: "jdoe@acmé.example",
            scope: "openid offline_access", sites: ["https://api.example answer=bearer credential=work", "b.example"],
            refreshToken: Secret(utf8: "canary-refresh"), identityToken: Secret(utf8: "canary.id.token"),
            signedIn: 1_800_000_000, expires: 1_800_003_600)
        record.ended = "the provider says invalid_grant"
        record.failures = 3
        record.lastFailure = 1_800_000_100
        record.obtained = 1_800_000_050
        record.identifier = "00112233445566778899aabbccddeeff"
        record.renewed = 1_800_000_060
        record.formerSites = ["c.example"]
        return record
    }

    private static func siteToken(_ host: String, _ token: String = "canary-site") -> SiteTokenRecord {
        SiteTokenRecord(
            host: host, port: 8443,
            stepUp: StepUp(scopes: ["pay"], claims: #"{"a":null}"#, acrValues: ["phr", "phrh"], maxAge: 0),
            resource: "https://\(host)/", access: Secret(utf8: token), expires: 1_800_000_900,
            obtained: 1_800_000_300)
    }

    @Test func tokensForOneSiteAreReadAsWritten() throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.whole(), accessToken: Self.access)
        try contents.setSiteToken(Self.siteToken("pay.example"), of: "work")
        try contents.setSiteToken(Self.siteToken("::1", "canary-other"), of: "work")
        let read = try VaultRecords.decode(try VaultRecords.encode(contents))
        #expect(read == contents)
        #expect(read.signIns["work"]?.siteTokens.map(\.host) == ["pay.example", "::1"])
        // One of the same site takes its place.
        try contents.setSiteToken(Self.siteToken("pay.example", "canary-newer"), of: "work")
        let tokens = try #require(contents.signIns["work"]?.siteTokens)
        #expect(tokens.map(\.host) == ["::1", "pay.example"])
        #expect(tokens[0].generation < tokens[1].generation)
        try contents.removeSiteToken(tokens[0], of: "work")
        #expect(contents.signIns["work"]?.siteTokens == [tokens[1]])
    }

    /// The one that was stored first makes room.
    @Test func aSignInHasAFewTokensForOneSite() throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.whole(), accessToken: Self.access)
        for number in 0...VaultLimits.siteTokens {
            try contents.setSiteToken(Self.siteToken("host\(number).example"), of: "work")
        }
        let hosts = try #require(contents.signIns["work"]?.siteTokens.map(\.host))
        #expect(hosts.count == VaultLimits.siteTokens && hosts.first == "host1.example")
        #expect(throws: VaultError.self) { try contents.setSiteToken(Self.siteToken("a.example"), of: "nobody") }
        #expect(throws: VaultError.self) {
            try contents.setSiteToken(Self.siteToken("a.example", "two words"), of: "work")
        }
    }

    private static func stored() -> SignInRecord {
        var record = whole()
        record.formerSites = nil
        return record
    }

    private static func withUserAgent() -> SignInRecord {
        var record = whole()
        record.userAgent = "system-private"
        return record
    }

    private static func withClientSecret(_ record: SignInRecord) -> SignInRecord {
        var record = record
        record.clientSecret = Secret(utf8: "canary-client")
        return record
    }

    @Test(arguments: [
        plain(), whole(), stored(), withUserAgent(), withClientSecret(whole()), withClientSecret(withUserAgent()),
    ])
    func aSignInIsDecodedAsEncoded(record: SignInRecord) throws {
        var contents = try filled()
        let before = contents.recordCount
        try contents.setSignIn(record, accessToken: Self.access)
        let encoded = try VaultRecords.encode(contents)
        let read = try VaultRecords.decode(encoded)
        #expect(read == contents && read.recordCount == before + 2)
        #expect(read.signIns["work"] == record && read.tokens["work"]?.token == Self.access)
        #expect(try VaultRecords.encode(read) == encoded)
    }

    /// A version without the fields at the end has written the record.
    @Test(arguments: [8 + 4 + 32 + 8 + 1 + 4 + 4 + 9, 4 + 32 + 8 + 1 + 4 + 4 + 9])
    func aSignInOfAnEarlierVersionIsRead(missing: Int) throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.whole(), accessToken: Self.access)
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        // The last bytes of the record, and the length before it.
        let end = try #require(bytes.indices.last { bytes[..<($0 + 1)].suffix(9) == Array("c.example".utf8)[...] }) + 1
        let name: [UInt8] = [0, 0, 0, 4] + Array("work".utf8)
        let start = try #require(
            bytes.indices.first {
                bytes[$0] == 13 && $0 + 13 <= bytes.count && Array(bytes[($0 + 5)..<($0 + 13)]) == name
            })
        let length = end - start - 5 - missing
        bytes.replaceSubrange((end - missing)..<end, with: [])
        bytes.replaceSubrange((start + 1)..<(start + 5), with: [0, 0, UInt8(length >> 8), UInt8(length & 0xFF)])
        let read = try #require(try VaultRecords.decode(Secret(bytes)).signIns["work"])
        #expect(read.identifier.isEmpty && read.renewed == 0 && read.formerSites == nil)
        #expect(read.account == Self.whole().account && read.lastFailure == Self.whole().lastFailure)
        var old = Self.stored()
        (old.identifier, old.renewed, old.obtained) = ("", 0, read.obtained)
        #expect(read == old && [old.signedIn, Self.whole().obtained].contains(read.obtained))
    }

    /// Contents have one encoding, and without a user agent it is that of earlier versions.
    @Test func aSignInWithAnEmptyUserAgentIsNotRead() throws {
        var contents = VaultContents()
        var record = Self.plain()
        record.userAgent = "device"
        try contents.setSignIn(record, accessToken: Self.access)
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        #expect(Array(bytes.suffix(10)) == [0, 0, 0, 6] + Array("device".utf8))
        let name: [UInt8] = [0, 0, 0, 4] + Array("work".utf8)
        let start = try #require(
            bytes.indices.first {
                bytes[$0] == 13 && $0 + 13 <= bytes.count && Array(bytes[($0 + 5)..<($0 + 13)]) == name
            })
        bytes[start + 4] -= 6
        bytes.replaceSubrange((bytes.count - 10)..., with: [0, 0, 0, 0])
        #expect(try code { _ = try VaultRecords.decode(Secret(bytes)) } == .altered)
        bytes[start + 4] -= 4
        #expect(try VaultRecords.decode(Secret(bytes.dropLast(4))).signIns["work"] == Self.plain())
    }

    /// A renewal of one must not be stored in the other.
    @Test func aSignInOfTheSameNameIsAnother() {
        let record = Self.whole()
        func differs(_ change: (inout SignInRecord) -> Void) -> Bool {
            var other = record
            change(&other)
            return !record.isSame(as: other)
        }
        #expect(differs { $0.identifier = "00112233445566778899aabbccddeef0" } && differs { $0.identifier = "" })
        #expect(differs { $0.issuer = "https://other.example" } && differs { $0.signedIn += 1 })
        #expect(!differs { ($0.refreshToken, $0.expires, $0.failures) = (nil, 0, 9) })
    }

    /// A new access token is another credential, and a changed record alone is not.
    @Test func onlyANewAccessTokenHasANewGeneration() throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.whole(), accessToken: Self.access)
        let first = contents.tokens["work"]
        var changed = Self.whole()
        changed.failures = 4
        try contents.updateSignIn(changed)
        #expect(contents.tokens["work"] == first && contents.signIns["work"]?.failures == 4)
        let generation = contents.generation
        try contents.updateSignIn(changed)
        #expect(contents.generation == generation)
        try contents.setSignIn(changed, accessToken: Self.access)
        #expect(contents.tokens["work"]?.generation == contents.generation && contents.tokens["work"] != first)
        #expect(try code { try contents.updateSignIn(Self.plain("other")) } == .invalidRecord)
    }

    @Test func aSignInTakesNoNameOfAnotherCredential() throws {
        var contents = VaultContents()
        try contents.setToken(name: "token", token: Self.access)
        try contents.setCredential(name: "password", user: "jdoe", password: Self.access)
        try contents.setSignIn(Self.plain(), accessToken: Self.access)
        let before = contents
        for name in ["token", "password"] {
            #expect(try code { try contents.setSignIn(Self.plain(name), accessToken: Self.access) } == .nameInUse)
        }
        #expect(try code { try contents.setToken(name: "work", token: Self.access) } == .nameInUse)
        #expect(
            try code { try contents.setCredential(name: "work", user: "a", password: Self.access) } == .nameInUse)
        let isRemoved = contents.removeCredential(named: "work")
        #expect(!isRemoved && contents == before)
    }

    /// The previous sign-in stays if the new one cannot be stored.
    @Test func anUnusableAccessTokenChangesNothing() throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.whole(), accessToken: Self.access)
        let before = contents
        #expect(
            try code { try contents.setSignIn(Self.plain(), accessToken: Secret(utf8: "a b")) } == .invalidRecord)
        #expect(contents == before)
    }

    @Test func removingASignInRemovesItsTokens() throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.whole(), accessToken: Self.access)
        let (first, second) = (contents.removeSignIn(named: "work"), contents.removeSignIn(named: "work"))
        #expect(first && !second && contents.recordCount == 0 && contents.credentialNames.isEmpty)
    }

    @Test func valuesOutsideTheLimitsAreRefused() throws {
        var contents = VaultContents()
        func refused(_ change: (inout SignInRecord) -> Void) throws -> Bool {
            var record = Self.whole()
            change(&record)
            return try code { try contents.setSignIn(record, accessToken: Self.access) } == .invalidRecord
        }
        let long = String(repeating: "a", count: VaultLimits.profileBytes + 1)
        #expect(try refused { $0.profile = long } && refused { $0.profile = "" } && refused { $0.issuer = "" })
        #expect(try refused { $0.account = "a\nb" } && refused { $0.ended = "\u{1B}" } && refused { $0.scope = long })
        #expect(try refused { $0.sites = Array(repeating: "a.example", count: 65) })
        #expect(try refused { $0.sites = ["a.example\nb.example"] } && refused { $0.expires = -1 })
        #expect(try refused { $0.refreshToken = Secret([]) })
        #expect(try refused { $0.identityToken = Secret(utf8: long) })
        #expect(contents == VaultContents())
    }

    @Test func aSignInWithoutItsTokenIsNotRead() throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.plain("aaaa"), accessToken: Self.access)
        var bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        let places = bytes.indices.filter { bytes[$0...].starts(with: Array("aaaa".utf8)) }
        #expect(places.count == 2)
        bytes.replaceSubrange(places[1]..<places[1] + 4, with: Array("bbbb".utf8))
        #expect(try code { _ = try VaultRecords.decode(Secret(bytes)) } == .altered)
    }

    @Test func everyCutSignInIsRefused() throws {
        var contents = VaultContents()
        try contents.setSignIn(Self.whole(), accessToken: Self.access)
        let bytes = try VaultRecords.encode(contents).withBytes { Array($0) }
        for count in bytes.indices {
            #expect(try code { _ = try VaultRecords.decode(Secret(bytes.prefix(count))) } == .altered, "\(count)")
        }
    }
}
