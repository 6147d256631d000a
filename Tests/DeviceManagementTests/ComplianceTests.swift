// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignOAuth
import Testing

@testable import CountersignDeviceManagement

@Suite struct ComplianceReplyTests {
    static let service = try! service(#"{"url": "https://mdm.example/comply", "hosts": ["portal.example"]}"#)

    static func service(_ value: String) throws -> ComplianceService {
        let document = try JSONParser.parse(Array(#"{"compliance_service": \#(value)}"#.utf8))
        var reader = try JSONReader(document, "the profile", .strict)
        let issuer = try EndpointURL("https://login.example", "issuer").origin
        return try #require(try ComplianceService(&reader, origins: [issuer], .secure))
    }

    private func read(_ members: String) throws -> ComplianceReply {
        try ComplianceReply(Array(#"{"Version": 1, \#(members)}"#.utf8), from: Self.service)
    }

    @Test func aReplyIsReadByItsMembers() throws {
        let reply = try read(
            #"""
            "ComplianceState": "Noncompliant", "Title": " a\n\u202etitle ", "Message": "m", "Session": "s-1",
            "PageUri": "https://portal.example/p?q=1", "PollInterval": 300, "Code": 103, "Restart": true, "More": [1],
            "NoncompliantRules": [{"SettingID": "disk", "Title": "Disk", "MoreInfoUri": ""}]
            """#)
        #expect(reply.state == .noncompliant && reply.title == "a title" && reply.message == "m")
        #expect(reply.session?.utf8Text == "s-1" && reply.page?.description == "https://portal.example/p?q=1")
        #expect(reply.interval == 300 && reply.hasNoPolicy && reply.restarts)
        #expect(
            reply.rules == [
                ComplianceRule(setting: "disk", expected: "", title: "Disk", description: "", moreInformation: nil)
            ])
        let least = try read(#""ComplianceState": "Compliant""#)
        #expect(least.title == nil && least.session == nil && least.interval == 5 && !least.restarts)
    }

    @Test(arguments: [
        #""ComplianceState": "compliant""#, #""ComplianceState": null"#, #""Title": "x""#,
        #""ComplianceState": "Compliant", "Title": 1"#, #""ComplianceState": "Compliant", "PollInterval": 0"#,
        #""ComplianceState": "Compliant", "PollInterval": 301"#,
        #""ComplianceState": "Compliant", "PollInterval": 1.5"#,
        #""ComplianceState": "Compliant", "Session": """#, #""ComplianceState": "Compliant", "Session": "a b""#,
        #""ComplianceState": "Compliant", "Restart": "true""#, #""ComplianceState": "Compliant", "Code": "103""#,
        #""ComplianceState": "Compliant", "NoncompliantRules": {}"#,
        #""ComplianceState": "Compliant", "NoncompliantRules": [1]"#,
        #""ComplianceState": "Compliant", "NoncompliantRules": [{"MoreInfoUri": "javascript:1"}]"#,
        #""ComplianceState": "Compliant", "ComplianceState": "Compliant""#,
    ])
    func aFaultyMemberMakesTheReplyFaulty(members: String) {
        let error = #expect(throws: DeviceManagementError.self) { try read(members) }
        #expect(error?.code == .malformed)
    }

    @Test func theLimitsAreExact() throws {
        let title = String(repeating: "t", count: 256)
        #expect(try read(#""ComplianceState": "Pending", "Title": "\#(title)""#).title == title)
        #expect(throws: DeviceManagementError.self) {
            try read(#""ComplianceState": "Pending", "Title": "\#(title)t""#)
        }
        func rules(_ count: Int) -> String {
            let all = Array(repeating: "{}", count: count).joined(separator: ",")
            return #""ComplianceState": "Pending", "NoncompliantRules": [\#(all)]"#
        }
        #expect(try read(rules(64)).rules.count == 64)
        #expect(throws: DeviceManagementError.self) { try read(rules(65)) }
        let deep = String(repeating: "[", count: 10_000)
        #expect(throws: DeviceManagementError.self) { try read(#""ComplianceState": "Pending", "x": \#(deep)"#) }
    }

    @Test(arguments: [
        "http://mdm.example/", "https://mdm.example:444/", "https://mdm.example.evil.example/", "//mdm.example/",
        "https://user@mdm.example/", "https://mdm.example/#x", "javascript:alert(1)", "file:///etc/passwd", "",
    ])
    func aPageMustBeOnAHostOfTheProfile(page: String) {
        let error = #expect(throws: DeviceManagementError.self) {
            try read(#""ComplianceState": "InteractionRequired", "PageUri": "\#(page)""#)
        }
        #expect(error?.code == .foreignPage, "\(page)")
    }

    @Test(arguments: ["https://mdm.example/x", "https://portal.example/", "https://LOGIN.example/a?b=c"])
    func thePagesOfTheProfileAreAccepted(page: String) throws {
        #expect(try read(#""ComplianceState": "InteractionRequired", "PageUri": "\#(page)""#).page != nil)
    }

    @Test(arguments: [
        #""https://mdm.example""#, "{}", #"{"url": "http://mdm.example"}"#, #"{"url": 1}"#,
        #"{"url": "https://mdm.example", "hosts": ["a/b"]}"#, #"{"url": "https://mdm.example", "protap": true}"#,
        #"{"url": "https://mdm.example", "page": "https://other.example/"}"#,
        #"{"url": "https://mdm.example", "protapp": "true"}"#,
        #"{"url": "https://mdm.example", "wipe_after_days": 0}"#,
        #"{"url": "https://mdm.example", "wipe_after_days": 3651}"#,
        #"{"url": "https://mdm.example", "wipe_after_days": 1.5}"#,
        #"{"url": "https://mdm.example", "wipe_after_days": "7"}"#,
    ])
    func aFaultyServiceIsRefused(value: String) {
        #expect(throws: JSONError.self) { try Self.service(value) }
    }

    @Test func aFaultyNumberOfDaysIsNamedWithItsPlace() {
        let error = #expect(throws: JSONError.self) {
            try Self.service("{\"url\": \"https://mdm.example\",\n \"wipe_after_days\": 4000}")
        }
        #expect(error?.position == JSONPosition(line: 2, column: 21))
        #expect(error?.reason.hasSuffix("\"wipe_after_days\" must be 1 to 3650 days") == true, "\(error?.reason ?? "")")
    }

    @Test(arguments: [1, 30, 3650] as [Int64])
    func theDaysUntilAWipeAreRead(days: Int64) throws {
        let service = try Self.service(#"{"url": "https://mdm.example", "wipe_after_days": \#(days)}"#)
        #expect(service.wipeAfterDays == days && Self.service.wipeAfterDays == nil)
    }

    @Test func theServiceIsReadByItsKeys() throws {
        let whole = try Self.service(
            #"{"url": "https://mdm.example/c", "page": "https://login.example/h", "protapp": true, "access_token": true}"#
        )
        #expect(whole.sendsCapability && whole.takesAccessToken && whole.page?.description == "https://login.example/h")
        #expect(!Self.service.sendsCapability && !Self.service.takesAccessToken && Self.service.page == nil)
    }
}

@Suite struct ComplianceRemediationTests {
    private static let page = "https://mdm.example/p"

    private func machine(
        silent: Bool = false, token: Secret? = nil, limit: Int64 = 60, _ value: String? = nil
    ) throws -> ComplianceRemediation {
        ComplianceRemediation(
            ComplianceAccount(identifier: "object-1", user: "jo"),
            at: try ComplianceReplyTests.service(value ?? #"{"url": "https://mdm.example/comply"}"#), client: "app",
            isSilent: silent, token: token, languages: "en", limit: limit,
            randomBytes: Secret(Array(repeating: UInt8(7), count: 32)))
    }

    private func reply(_ state: String, _ more: String = "", status: Int = 200) -> ComplianceRemediation.Response {
        let body = #"{"Version": 1, "ComplianceState": "\#(state)"\#(more)}"#
        return .reply(status: status, mediaType: "application/json", body: Array(body.utf8))
    }

    private var open: String { #", "Session": "s", "PageUri": "\#(Self.page)", "PollInterval": 10"# }

    @Test func aPersonOpensThePageAndTheStatusIsAskedForUntilThereIsOne() throws {
        var machine = try machine()
        guard case .send(let first) = machine.start(now: 0) else { return #expect(Bool(false)) }
        let body = first.body.utf8Text ?? ""
        #expect(body.contains(#""Action":"remediate""#) && body.contains(#""AccountId":"object-1""#))
        #expect(body.contains(#""Silent":false"#) && first.authorization == nil)
        let verifier = Base64URL.encode(Array(repeating: UInt8(7), count: 32))
        #expect(body.contains(Base64URL.encode(Digest.sha256.hash(Array(verifier.utf8)))) && !body.contains(verifier))
        #expect(machine.received(reply("InteractionRequired", open), now: 1) == .open(try EndpointURL(Self.page, "p")))
        #expect(machine.opened(now: 2) == .wait(seconds: 10))
        guard case .send(let second) = machine.waited(now: 12) else { return #expect(Bool(false)) }
        #expect(second.body.utf8Text?.contains(#""Verifier":"\#(verifier)""#) == true)
        // The page is opened once, even if the service names it again.
        #expect(machine.received(reply("InteractionRequired", open), now: 13) == .wait(seconds: 10))
        _ = machine.waited(now: 23)
        #expect(
            machine.received(reply("Compliant", #", "Title": "T", "Restart": true"#), now: 24)
                == .finish(ComplianceOutcome(.compliant, title: "T", restarts: true)))
        #expect(machine.cancelled() == .finish(ComplianceOutcome(.compliant, title: "T", restarts: true)))
    }

    @Test func aSilentRemediationOpensNothing() throws {
        var machine = try machine(silent: true)
        _ = machine.start(now: 0)
        guard case .finish(let outcome) = machine.received(reply("InteractionRequired", open), now: 1) else {
            return #expect(Bool(false))
        }
        #expect(outcome.status == .interactionRequired && outcome.page?.description == Self.page)
        #expect(!outcome.title.isEmpty && !outcome.message.isEmpty)
    }

    @Test func theTokenGoesToAServiceThatTakesItAndAfterARefusalNotAgain() throws {
        let token = Secret(utf8: "t1")
        var plain = try machine(token: token)
        guard case .send(let without) = plain.start(now: 0) else { return #expect(Bool(false)) }
        #expect(without.authorization == nil)
        var machine = try machine(token: token, #"{"url": "https://mdm.example/comply", "access_token": true}"#)
        guard case .send(let first) = machine.start(now: 0) else { return #expect(Bool(false)) }
        #expect(first.authorization?.utf8Text == "Bearer t1")
        guard case .send(let again) = machine.received(reply("Compliant", status: 401), now: 1) else {
            return #expect(Bool(false))
        }
        #expect(again.authorization == nil)
        guard case .finish(let outcome) = machine.received(reply("Compliant", status: 401), now: 1) else {
            return #expect(Bool(false))
        }
        #expect(outcome.status == .serviceFailure)
    }

    @Test func aTokenThatIsRefusedWhileThePersonIsAtThePageEndsNothing() throws {
        var machine = try machine(
            token: Secret(utf8: "t1"), #"{"url": "https://mdm.example/comply", "access_token": true}"#)
        _ = machine.start(now: 0)
        _ = machine.received(reply("InteractionRequired", open), now: 0)
        #expect(machine.opened(now: 0) == .wait(seconds: 10))
        guard case .send(let first) = machine.waited(now: 10) else { return #expect(Bool(false)) }
        #expect(first.authorization?.utf8Text == "Bearer t1")
        guard case .send(let again) = machine.received(reply("Compliant", status: 401), now: 10) else {
            return #expect(Bool(false))
        }
        #expect(again.authorization == nil)
        guard case .finish(let outcome) = machine.received(reply("Compliant"), now: 11) else {
            return #expect(Bool(false))
        }
        #expect(outcome.status == .compliant)
    }

    @Test func theWaitEnds() throws {
        var machine = try machine(silent: true, limit: 25)
        _ = machine.start(now: 0)
        let pending = reply("Pending", #", "Session": "s", "PollInterval": 10"#)
        #expect(machine.received(pending, now: 0) == .wait(seconds: 10))
        _ = machine.waited(now: 10)
        #expect(machine.received(pending, now: 10) == .wait(seconds: 10))
        _ = machine.waited(now: 20)
        guard case .finish(let outcome) = machine.received(pending, now: 20) else { return #expect(Bool(false)) }
        #expect(outcome.status == .interactionRequired && outcome.message.contains("25 seconds"))
    }

    /// The service is busy, and names a page on which the person can help.
    @Test(arguments: [false, true])
    func aPageOfAServiceThatIsBusyIsOpenedOnce(isSilent: Bool) throws {
        var machine = try machine(silent: isSilent, limit: 10_000)
        _ = machine.start(now: 0)
        let pending = reply("Pending", open)
        let first = machine.received(pending, now: 0)
        guard !isSilent else { return #expect(first == .wait(seconds: 10)) }
        guard case .open(let page) = first else { return #expect(Bool(false), "\(first)") }
        #expect(page.description.hasPrefix("https://"))
        #expect(machine.opened(now: 0) == .wait(seconds: 10))
        _ = machine.waited(now: 10)
        #expect(machine.received(pending, now: 10) == .wait(seconds: 10))
    }

    @Test func anOutageInBetweenLosesNothing() throws {
        var machine = try machine(limit: 10_000)
        _ = machine.start(now: 0)
        _ = machine.received(reply("InteractionRequired", open), now: 0)
        #expect(machine.opened(now: 0) == .wait(seconds: 10))
        for attempt in 1...5 {
            _ = machine.waited(now: Int64(attempt))
            #expect(machine.received(.failure("no route", isTransient: true), now: 1) == .wait(seconds: 10))
        }
        _ = machine.waited(now: 6)
        guard case .finish(let outcome) = machine.received(.failure("no route", isTransient: true), now: 6) else {
            return #expect(Bool(false))
        }
        #expect(outcome.status == .networkFailure && outcome.message.contains("no route"))
    }

    @Test(arguments: [
        (ComplianceRemediation.Response.failure("x", isTransient: true), ComplianceStatus.networkFailure),
        (.failure("x", isTransient: false), .serviceFailure),
        (.reply(status: 503, mediaType: nil, body: []), .serviceFailure),
        (.reply(status: 302, mediaType: nil, body: []), .serviceFailure),
        (.reply(status: 200, mediaType: "text/html", body: Array("{}".utf8)), .serviceFailure),
        (.reply(status: 200, mediaType: "application/json", body: Array("{}".utf8)), .serviceFailure),
    ])
    func aFirstRequestThatFailsEndsIt(response: ComplianceRemediation.Response, status: ComplianceStatus) throws {
        var machine = try machine()
        _ = machine.start(now: 0)
        guard case .finish(let outcome) = machine.received(response, now: 0) else { return #expect(Bool(false)) }
        #expect(outcome.status == status && !outcome.title.isEmpty && !outcome.message.isEmpty)
    }

    /// The person may have been done.
    @Test(arguments: [
        ("Pending", ComplianceStatus.userCancelled), ("InteractionRequired", .userCancelled),
        ("Cancelled", .userCancelled), ("Compliant", .compliant), ("Noncompliant", .notCompliant),
    ])
    func afterThePageWasClosedTheStatusIsAskedForOnceMore(state: String, status: ComplianceStatus) throws {
        var machine = try machine()
        _ = machine.start(now: 0)
        _ = machine.received(reply("InteractionRequired", open), now: 0)
        _ = machine.opened(now: 0)
        guard case .send(let last) = machine.closed() else { return #expect(Bool(false)) }
        #expect(last.body.utf8Text?.contains(#""Action":"status""#) == true)
        guard case .finish(let outcome) = machine.received(reply(state, open), now: 1) else {
            return #expect(Bool(false))
        }
        #expect(outcome.status == status)
        #expect(outcome.page?.description == (status == .compliant ? nil : Self.page))
        #expect(machine.waited(now: 9) == .finish(outcome) && machine.closed() == .finish(outcome))
    }

    @Test func aProgramThatEndsARemediationAsksNothingMore() throws {
        var machine = try machine()
        _ = machine.start(now: 0)
        _ = machine.received(reply("InteractionRequired", open), now: 0)
        _ = machine.opened(now: 0)
        guard case .finish(let outcome) = machine.cancelled() else { return #expect(Bool(false)) }
        #expect(outcome.status == .userCancelled && outcome.page?.description == Self.page)
        #expect(machine.waited(now: 9) == .finish(outcome))
    }

    @Test(arguments: [
        ([:], "en"), (["LANG": "C.UTF-8"], "en"), (["LANG": "de_CH.UTF-8"], "de-CH, de;q=0.8, en;q=0.7"),
        (["LC_ALL": "fr", "LANG": "de"], "fr, en;q=0.8"),
        (["LC_ALL": "", "LC_MESSAGES": "pt_BR@x"], "pt-BR, pt;q=0.8, en;q=0.7"),
        (["LANG": "en_US", "LANGUAGE": "de:fr_FR"], "de, fr-FR;q=0.8, fr;q=0.7, en-US;q=0.6, en;q=0.5"),
        (["LANG": "C", "LANGUAGE": "de"], "en"), (["LANG": "de_\r\nX: y"], "en"), (["LANG": "../../x"], "en"),
        (["LANG": "a_b_c"], "en"),
    ])
    func theLanguagesAreThoseOfTheLocale(environment: [String: String], field: String) {
        #expect(PreferredLanguages.field(in: environment) == field)
    }
}
