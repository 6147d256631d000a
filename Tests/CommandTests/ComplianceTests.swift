// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Synchronization
import Testing

@testable import Countersign

/// The three cases of conditional access with a protection policy, and `countersign compliance`.
@Suite(.waiting) struct ComplianceTests {
    /// Case 1: the policy is on before the person enrols.
    @Test(arguments: [400, 200, 500])
    func aPolicyBeforeEnrolmentIsAppliedAndThenThereIsAToken(status: Int) throws {
        let bench = try ComplianceBench(control: ["policy_status": status])
        let done = try bench.bench.enroll()
        #expect(done.status == 0 && done.output.contains("signed in as jdoe@acme.example"), "\(done.said)")
        #expect(bench.asked.withoutPolls == ["remediate", "page", "status"], "\(bench.asked)")
        let first = try #require(bench.remediations.first)
        #expect(first.user == "jdoe@acme.example" && first.token == false)
        let tokens = bench.bench.provider.requests.filter { $0.hasPrefix("POST /token") }
        #expect(tokens == ["POST /token authorization_code \(status)", "POST /token authorization_code 200"])
        let parameters = bench.bench.provider.tokenParameters
        #expect(parameters.count == 2)
        for (claims, info) in parameters {
            #expect(claims == #"{"access_token":{"xms_cc":{"values":["protapp"]}}}"# && info == "1")
        }
        let record = try bench.contents.compliance["work"]
        #expect(record?.isCompliant == true && record?.homeAccount == "object-1.tenant-1")
        let shown = try bench.countersign("compliance", "status", "--json")
        #expect(shown.status == 0 && shown.output.contains(#""account" : "object-1""#), "\(shown.said)")
    }

    /// Case 2: the policy is switched on later.
    @Test func aPolicyAfterEnrolmentIsAppliedByRemediateAndThenThereIsAToken() throws {
        let bench = try ComplianceBench(requires: false)
        #expect(try bench.bench.enroll().status == 0)
        let first = try #require(try bench.contents.tokens["work"])
        try bench.requirePolicy()
        try bench.change { contents in
            try contents.setCompliance(
                ComplianceRecord(
                    name: "work", homeAccount: "object-1.tenant-1", status: 1, title: "No", message: "Not yet.",
                    checked: 1))
        }
        let status = try bench.countersign("compliance", "status", "work")
        #expect(status.status == 1 && status.output.contains("notCompliant"), "\(status.said)")
        #expect(try bench.countersign("status").status == 1)

        let done = try bench.countersign("compliance", "remediate", "work")
        #expect(done.status == 0 && done.output.hasPrefix("compliant:"), "\(done.said)")
        let asked = bench.asked.withoutPolls
        #expect(asked == ["remediate silent", "remediate", "page", "status"], "\(bench.asked)")
        #expect(bench.remediations.map(\.account) == ["object-1", "object-1"])
        #expect(try bench.contents.tokens["work"]?.token != first.token)
        #expect(try bench.contents.compliance["work"]?.isCompliant == true)
        #expect(try bench.countersign("compliance", "status").status == 0)
    }

    /// Case 3: no policy is assigned to the person.
    @Test func withoutAnAssignedPolicyThereIsNeverAToken() throws {
        let bench = try ComplianceBench(["script": "unassigned"])
        let done = try bench.bench.enroll()
        #expect(done.status == 1, "\(done.said)")
        #expect(done.error.contains("no protection policy is assigned to \"jdoe@acme.example\""), "\(done.said)")
        #expect(try bench.contents.signIns.isEmpty && bench.contents.tokens.isEmpty)
    }

    /// The person is not sent in circles.
    @Test func aServiceAndAProviderThatContradictEachOtherAreAskedOnce() throws {
        let bench = try ComplianceBench(["lying": true])
        let done = try bench.bench.enroll()
        #expect(done.status == 1 && done.error.contains("the provider still requires"), "\(done.said)")
        #expect(bench.asked.withoutPolls == ["remediate", "page", "status"], "\(bench.asked)")
        #expect(bench.bench.provider.requests.count { $0.hasPrefix("POST /token") } == 2)
        #expect(try bench.contents.signIns.isEmpty)
    }

    @Test func aSilentRemediationOpensNoPage() throws {
        let bench = try ComplianceBench(requires: false)
        #expect(try bench.bench.enroll().status == 0)
        let opened = TextFile.lines(bench.bench.file("browser.arguments")).count
        try bench.requirePolicy()
        let done = try bench.countersign("compliance", "remediate", "work", "--silent")
        #expect(done.status == 1 && done.error.contains("interactionRequired: Sign in"), "\(done.said)")
        #expect(bench.asked == ["remediate silent"])
        #expect(TextFile.lines(bench.bench.file("browser.arguments")).count == opened)
        // A page that a person has to open says nothing about the device, and the provider has refused nothing yet.
        #expect(try bench.contents.compliance["work"]?.isCompliant != false)
        #expect(try bench.contents.tokens["work"] != nil && bench.contents.signIns["work"]?.refreshToken != nil)
    }

    @Test func anAccessTokenForTheServiceNeedsNoPage() throws {
        let bench = try ComplianceBench(["tokens": true], service: ["access_token": true], requires: false)
        #expect(try bench.bench.enroll().status == 0)
        try bench.requirePolicy()
        let done = try bench.countersign("compliance", "remediate", "work", "--silent")
        #expect(done.status == 0, "\(done.said)")
        #expect(bench.asked == ["remediate silent"] && bench.remediations.map(\.token) == [true])
    }

    /// The service does not take the token: it learns nothing more, and a person can still sign in at the page.
    @Test func aTokenThatTheServiceRefusesIsNotSentAgainWithTheNextRequest() throws {
        let bench = try ComplianceBench(service: ["access_token": true], requires: false)
        #expect(try bench.bench.enroll().status == 0)
        let done = try bench.countersign("compliance", "remediate", "work", "--silent")
        #expect(done.status == 1, "\(done.said)")
        #expect(bench.remediations.map(\.token) == [true, false])
    }

    @Test func theTextsAreInTheLanguageOfTheLocale() throws {
        let bench = try ComplianceBench(["script": "rules"], requires: false)
        #expect(try bench.bench.enroll().status == 0)
        let locale = ["LC_ALL": "de_CH.UTF-8"]
        let done = try bench.countersign("compliance", "remediate", "work", environment: locale)
        #expect(done.status == 1 && done.error.contains("Nicht geschützt"), "\(done.said)")
        #expect(done.error.contains("https://help.example/disk"), "\(done.said)")
        #expect(bench.service.requests.last?.language == "de-CH, de;q=0.8, en;q=0.7")
        #expect(try bench.countersign("compliance", "status").output.contains("verschlüsselt"))
    }

    @Test func aPersonWhoRefusesAtThePageIsNotSignedIn() throws {
        let bench = try ComplianceBench(["script": "refused"])
        let done = try bench.bench.enroll()
        #expect(done.status == 1 && done.error.contains("userCancelled: Refused"), "\(done.said)")
    }

    @Test func aServiceThatNeverDecidesIsNotWaitedForWithoutEnd() throws {
        let bench = try ComplianceBench(["script": "pending"], requires: false)
        #expect(try bench.bench.enroll().status == 0)
        let done = try bench.countersign("compliance", "remediate", "work", "--silent", "--timeout", "2")
        #expect(done.status == 1 && done.error.contains("interactionRequired"), "\(done.said)")
        #expect(bench.asked.count <= 4, "\(bench.asked)")
    }

    @Test(
        arguments: [
            ["raw": "{", "repeat": 1], ["raw": "[1]"], ["raw": "x", "repeat": 1 << 20], ["raw": "", "status": 302],
            ["raw": #"{"Version":1,"ComplianceState":7}"#], ["raw": #"{"Version":2,"ComplianceState":"Compliant"}"#],
            ["raw": #"{"Version":1,"ComplianceState":"Compliant"}"#, "type": "text/html"],
            ["raw": #"{"Version":1,"ComplianceState":"Pending"}"#],
            ["raw": "{\"a\":", "repeat": 5000], ["page": "https://evil.example/login"],
            ["page": "javascript:alert(1)"], ["page": "file:///etc/passwd"],
        ] as [[String: any Sendable]])
    func aHostileReplyIsAFailureOfTheService(control: [String: any Sendable]) throws {
        let bench = try ComplianceBench(control)
        let done = try bench.bench.enroll()
        #expect(done.status == 1 && done.error.contains("serviceFailure: "), "\(control): \(done.said)")
        #expect(!bench.asked.contains("page") && bench.asked.count == 1, "\(bench.asked)")
        let opened = TextFile.lines(bench.bench.file("browser.arguments"))
        #expect(!opened.contains { $0.contains("evil") || $0.contains("passwd") || $0.contains("javascript") })
    }

    @Test func aServiceThatIsNotThereIsANetworkFailure() throws {
        let bench = try ComplianceBench(service: ["url": "http://127.0.0.1:9/", "page": "http://127.0.0.1:9/help"])
        let done = try bench.bench.enroll()
        #expect(done.status == 1 && done.error.contains("networkFailure: "), "\(done.said)")
        #expect(done.error.contains("http://127.0.0.1:9/help"), "\(done.said)")
    }

    /// Without addresses and paths, which differ from run to run.
    private static func comparable(_ result: CommandResult) -> String {
        result.said.replacing(/http:[^ \n]+/, with: "URL").replacing(/[^ \n]+profile.json/, with: "PROFILE")
    }

    /// A window in which a person signs in, and which they close on a page of the compliance service. `visits`: when
    /// they have loaded the page.
    private func closingWindow(_ bench: SignInSandbox, visits: Bool) throws -> [String: String] {
        let url = #"$(printf '%s' "$line" | sed 's/.*"url":"\([^"]*\)".*/\1/')"#
        let visit = "curl -q -sS --noproxy '*' -o /dev/null \"\(url)\""
        return try bench.webView(
            """
            case $line in
            *authorize*) sign_in;;
            *) \(visits ? visit : ":"); say '{"reason":"window","type":"closed"}';;
            esac
            """)
    }

    /// A person may have been done with the page before they close it.
    @Test(arguments: [false, true])
    func aClosedPageHasTheSameResultWithAServer(visits: Bool) throws {
        var results: [String] = []
        for throughServer in [false, true] {
            let bench = try ComplianceBench(requires: false)
            #expect(try bench.bench.enroll().status == 0)
            try bench.requirePolicy()
            let server = throughServer ? try bench.bench.serveWithPassphrase() : nil
            let done = try bench.bench.run(
                ["compliance", "remediate", "work", "--user-agent", "embedded"],
                environment: closingWindow(bench.bench, visits: visits))
            #expect(server.map { $0.exitStatus == nil } ?? true)
            results.append(Self.comparable(done))
        }
        #expect(results[0].hasPrefix(visits ? "exit 0\ncompliant:" : "exit 1"), "\(results)")
        #expect(results[0].contains("userCancelled") == !visits)
        #expect(results[0] == results[1])
    }

    @Test(arguments: [false, true])
    func aClosedPageOfAnEnrolmentHasTheSameResultWithAServer(visits: Bool) throws {
        var results: [String] = []
        for throughServer in [false, true] {
            let bench = try ComplianceBench()
            let server = throughServer ? try bench.bench.serveWithPassphrase() : nil
            let done = try bench.bench.enroll(
                "--user-agent", "embedded", environment: closingWindow(bench.bench, visits: visits))
            #expect(server.map { $0.exitStatus == nil } ?? true)
            results.append(Self.comparable(done))
        }
        #expect(results[0].hasPrefix(visits ? "exit 0\nsigned in" : "exit 1"), "\(results)")
        #expect(results[0].contains("userCancelled") == !visits)
        #expect(results[0] == results[1])
    }

    /// As for a command that opens the vault itself.
    @Test(arguments: [(true, "compliant"), (false, "userCancelled")])
    func aServerLearnsThatThePageWasClosed(opens: Bool, status: String) throws {
        let bench = try ComplianceBench(requires: false)
        #expect(try bench.bench.enroll().status == 0)
        let server = try bench.bench.serveWithPassphrase()
        let vault = try #require(VaultServer(of: Home(path: bench.bench.file("home"))))
        let wasShown = Mutex(false)
        let operation = RemediateCompliance(
            name: "work", isSilent: false, languages: "en", seconds: 60)
        let result = try vault.perform(
            operation,
            OperationDialogue(
                report: { progress in
                    guard case .pageToOpen(let url) = progress else { return }
                    if opens {
                        _ = try? Command.run(
                            Tool.path("curl"), ["-q", "-sS", "--noproxy", "*", url], in: bench.bench.sandbox.folder)
                    }
                    wasShown.withLock { $0 = true }
                }, pageEnd: { wasShown.withLock { $0 } ? .closed : nil }))
        let report = try #require(result?.done)
        #expect(report.status == status, "\(server.errorOutput)")
        server.send(SIGTERM)
    }
}
