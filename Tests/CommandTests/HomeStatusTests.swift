// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignReporting
import CountersignSitePolicy
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign
@testable import CountersignCLI

/// The screen of `status`, from values.
@Suite(.waiting) struct HomeStatusTests {
    /// 2026-01-01T00:00:00Z.
    private static let now: Int64 = 1_767_225_600
    private static let day = Day.seconds

    private var status = HomeStatus(now: now, path: "/home/jdoe/home", version: "1.0 (commit a)")

    private func signIn(
        _ name: String, expires: Int64 = 0, ended: String = "", compliance: UInt8? = nil
    ) -> ListedSignIn {
        var record = SignInRecord(
            name: name, profile: "{}", source: "", issuer: "https://id.example", subject: "", account: "jdoe",
            scope: "files", sites: [], refreshToken: nil, identityToken: nil, signedIn: 1, expires: expires)
        record.ended = ended
        let policy = compliance.map { status in
            ListedCompliance(
                ComplianceRecord(
                    name: name, homeAccount: "o.t", status: status, title: "No screen lock", message: "", checked: 1))
        }
        return ListedSignIn(record, certificate: nil, compliance: policy, unstored: nil)
    }

    private func rejection(of name: String, until: String? = nil) throws -> BlockedCredential {
        let end = until.map { ", \"until\": \"\($0)\"" } ?? ""
        let json = """
            {"name": "\(name)", "everywhere": false, "places": [{"site": "https://a.example:443", "scheme": "basic",
              "since": "2025-12-31T00:00:00Z", "reason": "rejected"\(end)}]}
            """
        return try JSONDecoder().decode(BlockedCredential.self, from: Data(json.utf8))
    }

    private func renewal(
        _ name: String, need: String = "none", notAfter: Int64, due: Int64, isEnrolled: Bool
    ) throws -> RenewalState {
        let json = """
            {"name": "\(name)", "need": {"\(need)": {}}, "notAfter": \(notAfter), "due": \(due),
              "nextAttempt": \(due), "isEnrolled": \(isEnrolled), "hasKey": true}
            """
        return try JSONDecoder().decode(RenewalState.self, from: Data(json.utf8))
    }

    private func endings(_ contents: HomeStatus.Contents) -> [Ending] {
        contents.renewals.compactMap { Ending($0, at: Self.now) } + contents.signIns.compactMap { Ending($0) }
    }

    // MARK: The screen

    @Test func anEmptyHomeSaysHowToBegin() {
        var status = status
        status.isThere = false
        status.contents = HomeStatus.Contents()
        #expect(
            StatusText(status).text == """
                home         /home/jdoe/home (does not exist yet)
                proxy        not running; `countersign serve` starts it
                vault        none yet
                sites        none listed; `countersign sites add https://git.corp.example` lists one
                credentials  none; `countersign credential set --user USER` stores a password

                Nothing needs your attention.

                """)
    }

    @Test func everySectionIsOnOneScreen() throws {
        var status = status
        var reply = ControlReply(isLocked: false, processIdentifier: 47, addresses: ["127.0.0.1:3128", "unix:/run/c"])
        reply.since = Self.now - 60
        reply.version = "1.0 (commit a)"
        status.server = .running(reply)
        status.vault = .open(by: .passphrase)
        let list = """
            https://a.example answer=basic
            https://b.example answer=basic
            https://c.example
            https://d.example intercept=no
            """
        status.sites = .listed(try SiteList(files: [("AllowedSites/local.sites", list)]).rules, remarks: [])
        var contents = HomeStatus.Contents()
        contents.credentials = [
            ListedCredential(name: "api", kind: .token, user: nil, blocked: nil),
            ListedCredential(name: "enrollment", kind: .password, user: "jdoe", blocked: nil),
            // The sign-in's own.
            ListedCredential(name: "work", kind: .token, user: nil, blocked: nil),
        ]
        contents.renewals = [
            try renewal("laptop", notAfter: Self.now + 12 * Self.day, due: Self.now + Self.day, isEnrolled: false),
            // The proxy renews it.
            try renewal("vpn", notAfter: Self.now + 20 * Self.day, due: Self.now + Self.day, isEnrolled: true),
        ]
        contents.signIns = [signIn("work")]
        status.contents = contents
        status.blocked = [try rejection(of: "enrollment")]
        status.endings = endings(contents) + [Ending(thing: .root, time: Self.now + 31 * Self.day)]
        #expect(
            StatusText(status).text == """
                home         /home/jdoe/home
                proxy        listening on 127.0.0.1:3128, unix:/run/c
                             process 47 since 2025-12-31T23:59:00Z, version 1.0
                vault        open, with a passphrase
                sites        4 lines: 2 basic, 1 any scheme, 1 tunnelled
                credentials  api (token), enrollment (jdoe)
                identities   laptop (12 days left), vpn (20 days left)
                sign-ins     work (jdoe)

                1 thing needs your attention:
                  credential "enrollment": rejected at https://a.example:443 (basic) since 2025-12-31T00:00:00Z
                      `countersign credential set --user jdoe` with the right password
                      `countersign credential retry enrollment` permits an attempt

                Ends within 30 days:
                  client identity "laptop" ends 2026-01-13, 12 days left
                      `countersign certificate import FILE --name laptop --replace` replaces it

                NAME  ACCOUNT  PROVIDER            STATE
                work  jdoe     https://id.example  valid

                NAME  SCOPES  SITES
                work  files   none

                """)
    }

    @Test func aServerOfAnotherVersionIsNamed() {
        var status = status
        var reply = ControlReply(isLocked: false, processIdentifier: 47, addresses: [])
        reply.version = "1.0 (commit b)"
        status.server = .running(reply)
        #expect(
            StatusText(status).text.contains(
                "\n             process 47, version 1.0 (commit b); this command is 1.0 (commit a)\n"))
    }

    /// Commands are not broken, so that they can be copied.
    @Test func sentencesAreWrappedAndCommandsAreNot() {
        var status = status
        let sentence = String(repeating: "a long sentence ", count: 10)
        let command = "`countersign sites add \(String(repeating: "https://a.example", count: 8))`"
        status.faults = [Diagnostic(sentence, hint: command), Diagnostic("short", hint: sentence)]
        let lines = StatusText(status).text.split(separator: "\n")
        #expect(lines.filter { $0.count > 100 } == ["      \(command)"])
        #expect(lines.contains { $0.hasPrefix("    ") && !$0.hasPrefix("     ") }, "\(lines)")
    }

    /// Text of a server cannot drive the terminal or begin a line of its own.
    @Test func foreignTextStaysOnItsLine() {
        var status = status
        status.faults = [Diagnostic("bad\n\u{1B}[2Jname", hint: "`run\nthis`")]
        let text = StatusText(status).text
        #expect(text.contains("  bad\\u{A}\\u{1B}[2Jname\n      `run\\u{A}this`\n"), "\(text)")
    }

    @Test func aWideTableHasAParagraphForEachRow() {
        var status = status
        var contents = HomeStatus.Contents()
        contents.signIns = [signIn("a"), signIn("b", ended: String(repeating: "long ", count: 20) + "end")]
        status.contents = contents
        let text = StatusText(status).text
        #expect(
            text.contains(
                """

                a
                  account   jdoe
                  provider  https://id.example
                  state     valid
                b
                  account   jdoe
                  provider  https://id.example
                  state     ended: long long
                """), "\(text)")
        #expect(text.contains("NAME  SCOPES  SITES\na     files   none\n"), "\(text)")
    }

    @Test func theScreenHasTheRowsOfTheTerminal() {
        let text = "one\n\nthree of twelve\nfour\n"
        #expect(StatusCommand.lines(of: text, rows: 4, columns: 80) == ["one", "", "three of twelve"])
        // The long line takes two rows.
        #expect(StatusCommand.lines(of: text, rows: 4, columns: 8) == ["one", ""])
        #expect(StatusCommand.lines(of: text, rows: 99, columns: 8) == ["one", "", "three of twelve", "four"])
    }

    // MARK: What needs the person

    @Test func everyCauseNamesItsCommand() throws {
        var status = status
        status.isPaused = true
        status.vault = .locked
        status.sites = .faulty([Diagnostic("AllowedSites/a.sites:1:1: bad", hint: "fix it")])
        #expect(
            status.problems.map(\.subject) == [.paused, .vault, .sites]
                && status.problems.flatMap(\.advice) == [
                    "`countersign resume`", "`countersign vault unlock`", "fix it",
                ])
        status = self.status
        status.vault = .closed(inServer: false)
        #expect(status.problems.map(\.advice) == [["`countersign serve` asks for it and keeps it open"]])

        var contents = HomeStatus.Contents()
        contents.wipes = ["old"]
        contents.signIns = [
            signIn("a", ended: "invalid_grant"), signIn("b", expires: Self.now - 1), signIn("c", compliance: 1),
            signIn("d"),
        ]
        contents.renewals = [
            try renewal(
                "late", need: "aging", notAfter: Self.now + 99, due: Self.now - Self.day - 1, isEnrolled: true),
            try renewal("young", need: "aging", notAfter: Self.now + 99, due: Self.now - Self.day, isEnrolled: true),
            try renewal("gone", need: "expired", notAfter: Self.now - 1, due: Self.now - 9, isEnrolled: true),
        ]
        status = self.status
        status.contents = contents
        status.endings = endings(contents) + [Ending(thing: .root, time: Self.now - 1)]
        #expect(
            status.problems.map { "\($0.subject): \($0.advice.joined())" } == [
                "identity: `countersign certificate refresh late` renews it",
                "wipe: `countersign wipe old` completes that",
                "signIn: `countersign enroll a` signs you in again",
                "signIn: `countersign enroll b` signs you in again",
                "device: `countersign compliance remediate c`",
                "expired: `countersign certificate refresh gone` renews it",
                "expired: `countersign ca rotate` makes a new one",
            ])
    }

    /// A pause after silence ends by itself.
    @Test func onlyARejectionNeedsThePerson() throws {
        var status = status
        status.blocked = [try rejection(of: "x", until: "2026-01-01T00:30:00Z")]
        #expect(status.problems.isEmpty)
        status.blocked.append(try rejection(of: "y"))
        // Without the vault, its kind is not known.
        #expect(status.problems.map(\.advice) == [["`countersign credential retry y` permits an attempt"]])
    }

    /// The JSON has no member for what is not known.
    @Test func aClosedVaultHasNoSignInsInJSON() throws {
        var status = status
        status.vault = .closed(inServer: false)
        let json = try Console.json(StatusReport(status))
        #expect(json.contains(#""state" : "closed""#) && !json.contains("signIns") && !json.contains("credentials"))
        status.contents = HomeStatus.Contents()
        #expect(try Console.json(StatusReport(status)).contains(#""signIns" : ["#))
    }

    // MARK: Warnings of serve

    @Test func eachEndIsReportedOnceForEachStage() {
        var warnings = EndingWarnings()
        let end = Ending(thing: .root, time: Self.now + 20 * Self.day)
        func days(_ left: Int64) -> Int64 { end.time - left * Self.day }
        let token = Ending(thing: .accessToken("work"), time: end.time)
        let said = [20, 15, 14, 13, 8, 7, 7, 2, 1, 0].filter { !warnings.due([end, token], at: days($0)).isEmpty }
        #expect(said == [14, 7, 1])
        // A program that starts late reports the stage that it finds, and a successor is another thing.
        var later = EndingWarnings()
        #expect(later.due([end], at: days(3)) == [end] && later.due([end], at: days(2)).isEmpty)
        let successor = Ending(thing: .root, time: end.time + Self.day)
        #expect(later.due([successor], at: days(2)) == [successor])
        #expect(later.due([end], at: end.time + 1).isEmpty)
        #expect(EndingWarnings.lastDay([end, token], at: days(1)) == [end])
        #expect(EndingWarnings.lastDay([end], at: days(2)).isEmpty)
    }
}
