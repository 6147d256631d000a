// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Testing

@testable import CountersignSignIn

@Suite struct SessionScopeTests {
    private static func profile(
        _ host: String, issuer: String = "https://login.corp.example:8443/am", sites: String = "",
        group: String = "corp", cookies: String = "\"sid\", \"lb\""
    ) throws -> SignInProfile {
        let text = """
            {"issuer": "\(issuer)", "client_id": "c", "sites": [\(sites)],
             "session": {"group": "\(group)", "host": "\(host)", "cookies": [\(cookies)]}}
            """
        return try SignInProfile(Array(text.utf8))
    }

    @Test func theIssuersHostHasItsPort() throws {
        let profile = try Self.profile("Login.Corp.example", sites: "\"https://api.corp.example\"")
        #expect(profile.session?.cookies == ["sid", "lb"] && profile.session?.group == "corp")
        #expect(
            profile.siteLines(name: "work") == [
                "https://api.corp.example answer=bearer credential=work",
                "https://login.corp.example:8443 answer=none session=corp cookies=sid,lb",
            ])
    }

    @Test func aSiteThatIsListedAnywayHasOneLine() throws {
        let lines = try Self.profile("api.corp.example", sites: "\"API.corp.example:8444\"").siteLines(name: "work")
        #expect(lines == ["API.corp.example:8444 answer=bearer credential=work session=corp cookies=sid,lb"])
    }

    @Test func aHostBelowOneOfTheProfileIsAccepted() throws {
        let below = try Self.profile("a.login.corp.example").siteLines(name: "work")
        #expect(below == ["https://a.login.corp.example answer=none session=corp cookies=sid,lb"])
        let wildcard = try Self.profile("sso.corp.example", sites: "\"*.corp.example\"").siteLines(name: "work")
        #expect(wildcard.last == "https://sso.corp.example answer=none session=corp cookies=sid,lb")
    }

    @Test(arguments: [
        "corp.example", "evil.example", "evillogin.corp.example", "example", "co.uk", "login.corp.example.evil.example",
        "", "a b", "*.corp.example", "login.corp.example:8443", "https://login.corp.example",
    ])
    func anyOtherHostIsRefused(host: String) throws {
        #expect(throws: JSONError.self) { try Self.profile(host) }
    }

    @Test func thePublicSuffixBelowAProfilesHostIsRefused() throws {
        #expect(throws: JSONError.self) { try Self.profile("co.uk", issuer: "https://uk") }
        #expect(throws: JSONError.self) { try Self.profile("127.0.0.1", issuer: "http://127.0.0.1:1") }
    }

    @Test(arguments: ["", "\"a b\"", "\"a,b\"", "\"a=b\"", "\"a\", \"a\"", "\"#a\"", "\"a;b\"", "\"\\r\""])
    func otherNamesOfCookiesAreRefused(cookies: String) throws {
        #expect(throws: JSONError.self) { try Self.profile("login.corp.example", cookies: cookies) }
    }

    @Test(arguments: ["", "a b", ".a", "a#b"])
    func otherNamesOfGroupsAreRefused(group: String) throws {
        #expect(throws: JSONError.self) { try Self.profile("login.corp.example", group: group) }
    }
}
