// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignOAuth
import Testing

@testable import CountersignIssuer

/// The issuer with the client's machines, which verify every response.
@Suite struct LocalIssuerTests {
    @Test func aSignInEndsWithAVerifiedIDTokenAndAnAccessToken() throws {
        let run = try SignInRun(scopes: ["openid", "api"])
        let result = try run.signIn()
        #expect(result.idToken?.subject == "4711" && result.idToken?.accountName == "jdoe")
        #expect(result.tokens.refreshToken == nil && result.tokens.expiresAt == 1300)
        let grant = run.issuer.grant(of: result.tokens.accessToken, now: 1299)
        #expect(grant == LocalIssuer.Grant(user: "jdoe", scopes: ["openid", "api"]))
        #expect(run.issuer.grant(of: result.tokens.accessToken, now: 1300) == nil)
        #expect(run.issuer.grant(of: Secret(utf8: "another"), now: 1000) == nil)
    }

    @Test func aPushedRequestIsUsedOnce() throws {
        let run = try SignInRun { $0.requiresPushedAuthorization = true }
        var machine = try run.machine()
        guard case .open(let url) = run.run(machine.start(), &machine) else { throw SignInRun.Unexpected("no page") }
        #expect(url.query?.contains("code_challenge") == false)
        #expect(run.open(url).status == 303)
        #expect(run.open(url).status == 400)
        let direct = run.issuer.respond(
            to: IssuerRequest(path: "/authorize", query: Self.query()), now: 1000)
        #expect(direct.status == 400 && direct.text.contains("must be pushed"))
    }

    // MARK: The login page

    @Test func thePageAsksForNameAndPassword() throws {
        let run = try SignInRun(.page(isFilledIn: false))
        var machine = try run.machine()
        guard case .open(let url) = run.run(machine.start(), &machine) else { throw SignInRun.Unexpected("no page") }
        let page = run.open(url)
        let name = try #require(page.hidden("request"))
        #expect(page.status == 200 && !page.text.contains("jdoe"))
        let wrong = run.post("/sign-in", ["request": name, "user": "jdoe", "password": "pass"])
        #expect(wrong.status == 403 && wrong.hidden("request") == name && wrong.text.contains("password is wrong"))
        let right = run.post("/sign-in", ["request": name, "user": "jdoe", "password": "pa<ss"])
        guard case .accepted(let action) = machine.redirected(.url(try #require(right.location))),
            case .finish = run.run(action, &machine)
        else { throw SignInRun.Unexpected(right.location ?? "") }
        #expect(run.post("/sign-in", ["request": name, "user": "jdoe", "password": "pa<ss"]).status == 400)
    }

    @Test func theFilledInPageIsEscaped() throws {
        let run = try SignInRun(.page(isFilledIn: true))
        let page = run.issuer.respond(to: IssuerRequest(path: "/authorize", query: Self.query()), now: 1000)
        #expect(page.text.contains("value=\"jdoe\"") && page.text.contains("value=\"pa&lt;ss\""))
        let code = run.issuer.respond(to: IssuerRequest(path: "/enter", query: "user_code=%22%3E%3Cb%3E"), now: 1000)
        #expect(code.text.contains("value=\"&quot;&gt;&lt;b&gt;\"") && !code.text.contains("<b>"))
    }

    @Test func aPersonMayDecline() throws {
        let run = try SignInRun(.page(isFilledIn: true))
        var machine = try run.machine()
        guard case .open(let url) = run.run(machine.start(), &machine) else { throw SignInRun.Unexpected("no page") }
        let name = try #require(run.open(url).hidden("request"))
        let declined = run.post("/sign-in", ["request": name, "deny": "yes"])
        guard case .accepted(.fail(let error)) = machine.redirected(.url(try #require(declined.location))) else {
            throw SignInRun.Unexpected(declined.location ?? "")
        }
        #expect(error.code == .denied)
    }

    @Test func thePageExpires() throws {
        let run = try SignInRun(.page(isFilledIn: true))
        let page = run.issuer.respond(to: IssuerRequest(path: "/authorize", query: Self.query()), now: 1000)
        let form = ["request": try #require(page.hidden("request")), "user": "jdoe", "password": "pa<ss"]
        #expect(run.post("/sign-in", form, now: 1600).status == 400)
    }

    // MARK: Refusals

    private static func query(_ changes: [String: String] = [:]) -> String {
        let usual = [
            "client_id": "client", "response_type": "code", "redirect_uri": "http://127.0.0.1:4000/back",
            "scope": "openid offline_access", "state": "s", "code_challenge_method": "S256",
            "code_challenge": Base64URL.encode(Digest.sha256.hash("verifier".utf8)),
        ]
        return usual.merging(changes) { $1 }.map { "\($0)=\(FormEncoding.encode(Array($1.utf8)))" }
            .joined(separator: "&")
    }

    /// Nothing is sent to a redirect URI that is not the client's (RFC 6749 §4.1.2.1).
    @Test(arguments: [
        ["client_id": "other"], ["redirect_uri": "https://evil.example/back"],
        ["redirect_uri": "http://127.0.0.1:4000/other"], ["redirect_uri": "http://localhost:4000/back"],
        ["request_uri": "urn:ietf:params:oauth:request_uri:x"],
    ])
    func aForeignRequestIsNotRedirected(changes: [String: String]) throws {
        let run = try SignInRun()
        let response = run.issuer.respond(
            to: IssuerRequest(path: "/authorize", query: Self.query(changes)), now: 1000)
        #expect(response.status == 400 && response.location == nil)
    }

    @Test(arguments: [
        (["response_type": "token"], "unsupported_response_type"), (["code_challenge": ""], "invalid_request"),
        (["code_challenge_method": "plain"], "invalid_request"), (["scope": "unknown"], "invalid_scope"),
        (["response_mode": "fragment"], "invalid_request"),
    ])
    func aFaultyRequestIsReportedToTheClient(changes: [String: String], code: String) throws {
        let run = try SignInRun()
        let response = run.issuer.respond(
            to: IssuerRequest(path: "/authorize", query: Self.query(changes)), now: 1000)
        let location = try #require(response.location)
        #expect(location.hasPrefix("http://127.0.0.1:4000/back?error=\(code)&") && location.contains("&state=s"))
    }

    @Test func aParameterOccursOnce() throws {
        let run = try SignInRun()
        let query = Self.query() + "&scope=openid"
        #expect(run.issuer.respond(to: IssuerRequest(path: "/authorize", query: query), now: 1000).status == 400)
    }

    @Test func otherPagesAndMethodsAreRefused() throws {
        let run = try SignInRun()
        #expect(run.issuer.respond(to: IssuerRequest(path: "/other"), now: 1000).status == 404)
        #expect(run.issuer.respond(to: IssuerRequest(path: "/token"), now: 1000).status == 405)
        #expect(run.post("/keys", [:]).status == 405)
    }

    private func code(_ run: SignInRun) throws -> String {
        let response = run.issuer.respond(to: IssuerRequest(path: "/authorize", query: Self.query()), now: 1000)
        let query = try #require(response.location?.split(separator: "?").last)
        return try #require(FormEncoding.decode(query.utf8)?.first { $0.name == "code" }?.value)
    }

    private static func redemption(_ code: String, _ changes: [String: String] = [:]) -> [String: String] {
        [
            "grant_type": "authorization_code", "client_id": "client", "code": code, "code_verifier": "verifier",
            "redirect_uri": "http://127.0.0.1:4000/back",
        ].merging(changes) { $1 }
    }

    @Test(arguments: [
        ["code_verifier": "another"], ["redirect_uri": "http://127.0.0.1:4001/back"], ["client_id": "other"],
        ["code": "another"],
    ])
    func aCodeIsRedeemedByItsOwnClientOnly(changes: [String: String]) throws {
        let run = try SignInRun()
        let response = run.post("/token", Self.redemption(try code(run), changes))
        #expect(response.status == (changes["client_id"] == nil ? 400 : 401), "\(response.text)")
    }

    @Test func aCodeExpires() throws {
        let run = try SignInRun()
        let form = Self.redemption(try code(run))
        #expect(run.post("/token", form, now: 1060).status == 400)
    }

    /// RFC 6749 §4.1.2.
    @Test func aSecondUseOfACodeEndsTheSignIn() throws {
        let run = try SignInRun()
        let form = Self.redemption(try code(run))
        let first = run.post("/token", form)
        let document = try JSONParser.parse(first.body)
        guard first.status == 200, case .string(let access)? = document["access_token"]?.content else {
            throw SignInRun.Unexpected(first.text)
        }
        #expect(run.issuer.grant(of: Secret(utf8: access), now: 1000) != nil)
        #expect(run.post("/token", form).text.contains("used before"))
        #expect(run.issuer.grant(of: Secret(utf8: access), now: 1000) == nil)
    }

    // MARK: Renewal and the end

    @Test func aRefreshTokenIsUsedOnce() throws {
        let run = try SignInRun()
        let first = try run.signIn().tokens
        guard case .finish(let second, _) = try run.refresh(first, now: 1200) else {
            throw SignInRun.Unexpected("not refreshed")
        }
        #expect(run.issuer.grant(of: second.accessToken, now: 1499) != nil)
        guard case .fail(let error, discardsTokens: true) = try run.refresh(first, now: 1200) else {
            throw SignInRun.Unexpected("refreshed twice")
        }
        #expect(error.code == .invalidGrant)
        // The reuse has ended the sign-in.
        #expect(run.issuer.grant(of: second.accessToken, now: 1200) == nil)
        guard case .fail = try run.refresh(second, now: 1200) else { throw SignInRun.Unexpected("still refreshed") }
    }

    @Test func revocationOfTheRefreshTokenEndsTheSignIn() throws {
        let run = try SignInRun()
        let tokens = try run.signIn().tokens
        let refresh = try #require(tokens.refreshToken?.utf8Text)
        #expect(run.post("/revoke", ["client_id": "other", "token": refresh]).status == 401)
        #expect(run.issuer.grant(of: tokens.accessToken, now: 1000) != nil)
        #expect(run.post("/revoke", ["client_id": "client", "token": refresh]).status == 200)
        #expect(run.issuer.grant(of: tokens.accessToken, now: 1000) == nil)
        guard case .fail = try run.refresh(tokens) else { throw SignInRun.Unexpected("refreshed") }
    }

    @Test func anAccessTokenIsRevokedAlone() throws {
        let run = try SignInRun()
        let tokens = try run.signIn().tokens
        let access = try #require(tokens.accessToken.utf8Text)
        #expect(run.post("/revoke", ["client_id": "client", "token": access]).status == 200)
        #expect(run.issuer.grant(of: tokens.accessToken, now: 1000) == nil)
        guard case .finish = try run.refresh(tokens) else { throw SignInRun.Unexpected("not refreshed") }
    }

    // MARK: Devices

    @Test func aDeviceWaitsForItsPerson() throws {
        let run = try SignInRun(.page(isFilledIn: true))
        var machine = try run.machine(device: true)
        guard case .show(let shown, seconds: 5) = run.run(machine.start(), &machine) else {
            throw SignInRun.Unexpected("no code")
        }
        guard case .wait(seconds: 5) = run.run(machine.waited(now: 1005), &machine, now: 1005) else {
            throw SignInRun.Unexpected("not pending")
        }
        // A device that polls too early waits five seconds longer (RFC 8628 §3.5).
        guard case .wait(seconds: 10) = run.run(machine.waited(now: 1006), &machine, now: 1006) else {
            throw SignInRun.Unexpected("not slowed down")
        }
        let account = ["user": "jdoe", "password": "pa<ss"]
        #expect(run.post("/enter", account.merging(["user_code": "BCDF-GHJK"]) { $1 }).status == 403)
        let wrong = run.post("/enter", ["user_code": shown.userCode, "user": "jdoe", "password": "x"])
        #expect(wrong.status == 403)
        let typed = shown.userCode.lowercased().filter { $0 != "-" }
        #expect(run.post("/enter", account.merging(["user_code": typed]) { $1 }).status == 200)
        guard case .finish(let result) = run.run(machine.waited(now: 1016), &machine, now: 1016) else {
            throw SignInRun.Unexpected("no tokens")
        }
        #expect(result.idToken?.subject == "4711")
    }

    @Test func aDeviceIsDeclined() throws {
        let run = try SignInRun(.page(isFilledIn: true))
        var machine = try run.machine(device: true)
        guard case .show(let shown, _) = run.run(machine.start(), &machine) else {
            throw SignInRun.Unexpected("no code")
        }
        #expect(run.post("/enter", ["user_code": shown.userCode, "deny": "yes"]).status == 200)
        guard case .fail(let error) = run.run(machine.waited(now: 1005), &machine, now: 1005) else {
            throw SignInRun.Unexpected("not declined")
        }
        #expect(error.code == .denied)
    }

    @Test func anAutomaticIssuerConfirmsADevice() throws {
        let run = try SignInRun()
        var machine = try run.machine(device: true)
        guard case .show(_, let seconds) = run.run(machine.start(), &machine),
            case .finish = run.run(machine.waited(now: 1000 + seconds), &machine, now: 1000 + seconds)
        else { throw SignInRun.Unexpected("no tokens") }
    }

    // MARK: Tables

    @Test func aFullTableForgetsTheValueThatExpiresNext() {
        var table = ExpiringTable<Int>()
        for number in 0..<1024 { table.insert(number, "\(number)", expires: 2000 + Int64(number), now: 1000) }
        table.insert(-1, "new", expires: 5000, now: 1000)
        #expect(table.value("0", now: 1000) == nil && table.value("1", now: 1000) == 1)
        table.insert(-2, "newer", expires: 5000, now: 2500)
        #expect(table.value("600", now: 1000) == 600 && table.value("500", now: 1000) == nil)
    }
}
