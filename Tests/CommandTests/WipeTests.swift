// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign

/// `countersign wipe`, also when it is killed.
@Suite(.waiting) struct WipeTests {
    private let bench: ComplianceBench
    private var place: SignInSandbox { bench.bench }

    /// The enrolment `other` with a site, a session and a compliance service, as `work` will have them, and a person's
    /// own line and credential.
    init() throws {
        bench = try ComplianceBench(requires: false)
        for (name, group) in [("work", "corp"), ("other", "spare")] {
            let compliance: [String: any Sendable] = ["url": bench.service.url]
            let session: [String: any Sendable] = [
                "group": group, "host": "\(name).corp.example", "cookies": ["sid"],
            ]
            let profile = try place.provider.profile([
                "name": name, "sites": ["https://\(name).corp.example"], "compliance_service": compliance,
                "session": session,
            ])
            try place.sandbox.folder.write("\(name).json", profile)
        }
        try enroll("other")
        try place.sandbox.succeed("credential", "set", "mine", "--token-stdin", input: "mine\n")
        try place.sandbox.succeed("sites", "add", "https://own.corp.example", "credential=mine", "answer=bearer")
    }

    private func enroll(_ name: String) throws {
        try enroll(
            name, key: SharedSession.Key(group: name == "work" ? "corp" : "spare", host: "\(name).corp.example"))
    }

    /// With a cookie of that session.
    private func enroll(_ name: String, key: SharedSession.Key) throws {
        let done = try bench.countersign("enroll", "\(name).json", "--yes")
        guard done.status == 0 else { throw HarnessError(done.said) }
        try bench.change { contents in
            let cookie = Cookie(
                Cookie.Identity(name: "sid", domain: key.host, isHostOnly: true, path: "/"),
                value: Secret(utf8: "canary-\(name)"), isSecure: true, isHTTPOnly: true, sameSite: .lax, expires: nil,
                stored: Int64(time(nil)))
            var session = SharedSession(key: key)
            session.apply(.set(cookie))
            try contents.setSession(session)
        }
    }

    /// All that is not of the enrolment `work`: records with every byte of their fields, and files.
    private struct Unrelated: Equatable {
        let signIn: SignInRecord?
        let tokens: [String]
        let generations: [UInt64?]
        let compliance: ComplianceRecord?
        let sessions: [SharedSession]
        let files: [String: String]
    }

    private var unrelated: Unrelated {
        get throws {
            let contents = try bench.contents
            let names = contents.tokens.keys.filter { $0 != "work" }.sorted()
            let folder = place.file("home/AllowedSites")
            let files = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
                $0.hasSuffix(".sites") && $0 != "signed-in.work.sites"
            }
            return Unrelated(
                signIn: contents.signIns["other"], tokens: names.map { contents.tokens[$0]?.token.utf8Text ?? "" },
                generations: names.map { contents.tokens[$0]?.generation }, compliance: contents.compliance["other"],
                sessions: contents.sessions.values.filter { $0.key.group != "corp" },
                files: Dictionary(uniqueKeysWithValues: files.map { ($0, TextFile.text("\(folder)/\($0)")) }))
        }
    }

    private func expectWiped(_ comment: Comment) throws {
        let contents = try bench.contents
        #expect(contents.signIns["work"] == nil && contents.tokens["work"] == nil, comment)
        #expect(contents.compliance["work"] == nil && contents.wipes.isEmpty, comment)
        #expect(!contents.sessions.keys.contains { $0.group == "corp" }, comment)
        #expect(!FileManager.default.fileExists(atPath: place.file("home/AllowedSites/signed-in.work.sites")), comment)
    }

    @Test func aWipeRemovesWhatTheEnrolmentBroughtAndNothingElse() throws {
        try enroll("work")
        let before = try unrelated
        #expect(before.tokens.count == 2 && before.sessions.count == 1 && before.files.count >= 2)
        let refused = try bench.countersign("wipe", "work")
        #expect(refused.status == 1 && refused.error.contains("--yes"), "\(refused.said)")
        #expect(try bench.contents.signIns["work"] != nil)
        let done = try bench.countersign("wipe", "work", "--yes")
        #expect(done.status == 0 && done.output.hasPrefix("wiped: \"work\""), "\(done.said)")
        try expectWiped("wiped")
        #expect(try unrelated == before)
        #expect(
            place.provider.requests.suffix(2) == ["POST /revoke refresh_token 200", "POST /revoke access_token 200"])
        let again = try bench.countersign("wipe", "work", "--yes")
        #expect(again.status == 1 && again.error.contains("there is no sign-in \"work\""), "\(again.said)")
    }

    @Test func aProviderThatIsDownDoesNotPreventIt() throws {
        try enroll("work")
        let before = try unrelated
        try place.provider.change(["fail": ["/revoke": "close", "/.well-known/openid-configuration": "close"]])
        let done = try bench.countersign("wipe", "work", "--yes")
        #expect(done.status == 0 && done.error.contains("has not revoked the tokens"), "\(done.said)")
        try expectWiped("the provider is down")
        #expect(try unrelated == before)
    }

    /// strace kills the command at each call of the kind. The next command, whichever it is, completes the wipe.
    @Test(arguments: [("rename", 5), ("unlink", 1), ("fsync", 6)])
    func aKilledWipeIsCompletedByTheNextCommand(call: String, least: Int) throws {
        var (count, interrupted) = (1, 0)
        while true {
            try enroll("work")
            let before = try unrelated
            let calls = try place.sandbox.callsUnlessKilled(
                at: call, count, ["wipe", "work", "--yes"], environment: place.environment)
            let comment = Comment(rawValue: "killed at \(call) \(count)")
            #expect(try unrelated == before, comment)
            if try !bench.contents.wipes.isEmpty {
                interrupted += 1
                let next = try place.sandbox.countersign("session", "list")
                #expect(next.status == 0 && next.error.contains("completed the wipe of \"work\""), "\(next.said)")
            } else if try bench.contents.signIns["work"] != nil {
                // It was killed before the intent was recorded, and nothing has changed.
                #expect(try bench.contents.signIns["work"]?.ended == "", comment)
                #expect(try bench.countersign("wipe", "work", "--yes").status == 0, comment)
            }
            try expectWiped(comment)
            #expect(try unrelated == before, comment)
            if let calls {
                #expect(count > 1 && calls >= least, "\(calls)")
                #expect(interrupted > 0, "no wipe was interrupted at \(call)")
                break
            }
            count += 1
            try #require(count < 40)
        }
    }

    /// From the first step on, nothing of the enrolment is used; `serve` completes the wipe when it starts.
    @Test func aRunningProxyCompletesAWipe() throws {
        try enroll("work")
        let before = try unrelated
        try bench.change { contents in
            let record = try #require(contents.signIns["work"])
            try contents.setWipe(
                WipeRecord(
                    name: "work", identifier: record.identifier, begun: 1, sites: record.sites, sessionGroup: "corp",
                    sessionHost: "work.corp.example"))
        }
        let server = try serve()
        let deadline = Date().addingTimeInterval(60)
        while try !bench.contents.wipes.isEmpty, Date() < deadline { usleep(100_000) }
        try expectWiped("served")
        #expect(try unrelated == before)
        server.send(SIGTERM)
    }

    /// A different sign-in of that name is not wiped.
    @Test func aWipeThatIsNotCompleteKeepsItsName() throws {
        try enroll("work")
        let sites = try bench.contents.signIns["work"]?.sites ?? []
        #expect(!sites.isEmpty)
        try bench.change { contents in
            try contents.setWipe(
                WipeRecord(
                    name: "work", identifier: "another", begun: 1, sites: sites, sessionGroup: "", sessionHost: ""))
        }
        let before = try bench.contents.signIns["work"]
        let listed = try place.sandbox.countersign("sites", "list").output
        #expect(listed.contains(sites[0].prefix { $0 != " " }))
        #expect(try place.sandbox.countersign("session", "list").status == 0)
        #expect(try bench.contents.wipes.isEmpty && bench.contents.signIns["work"] == before)
        #expect(try place.sandbox.countersign("sites", "list").output == listed)
    }

    /// The secrets are gone even if the rest has to wait until a file is corrected.
    @Test func aFaultInAFileOfSitesKeepsNoSecret() throws {
        try enroll("work")
        try place.sandbox.folder.write("home/AllowedSites/own.sites", "https://a.example awnser=basic\n")
        let refused = try bench.countersign("wipe", "work", "--yes")
        #expect(refused.status != 0 && refused.error.contains("own.sites"), "\(refused.said)")
        let left = try bench.contents
        #expect(left.signIns["work"]?.refreshToken == nil && left.signIns["work"]?.identityToken == nil)
        #expect(!left.sessions.values.contains { $0.key.group == "corp" })

        try place.sandbox.folder.write("home/AllowedSites/own.sites", "https://a.example answer=basic\n")
        let done = try bench.countersign("wipe", "work", "--yes")
        #expect(done.status == 0, "\(done.said)")
        #expect(try bench.contents.signIns["work"] == nil && bench.contents.wipes.isEmpty)
    }

    // MARK: Several at once

    /// Records that the wipe has begun.
    private func begin(_ name: String, _ group: String) throws {
        try bench.change { contents in
            let record = try #require(contents.signIns[name])
            try contents.setWipe(
                WipeRecord(
                    name: name, identifier: record.identifier, begun: 1, sites: record.sites, sessionGroup: group,
                    sessionHost: "\(name).corp.example"))
        }
    }

    private var home: Home { Home(path: place.file("home")) }

    /// `other` comes before `work`.
    @Test func aWipeThatAnotherProcessIsDoingIsLeftToIt() throws {
        try enroll("work")
        try begin("other", "spare")
        try begin("work", "corp")
        let lock = try RenewalLock.acquireIfFree(RenewalLock.name(ofSignIn: "other"), of: home)
        try #require(lock != nil)
        let next = try place.sandbox.countersign("session", "list")
        #expect(next.status == 0 && next.error.contains("completed the wipe of \"work\""), "\(next.said)")
        #expect(!next.error.contains("\"other\""), "\(next.said)")
        let contents = try bench.contents
        #expect(contents.signIns["work"] == nil && Array(contents.wipes.keys) == ["other"])
        #expect(contents.signIns["other"] != nil && contents.tokens["other"] != nil)
        withExtendedLifetime(lock) {}
    }

    @Test func aWipeThatFailsKeepsNoOtherFromBeingCompleted() throws {
        try enroll("work")
        try begin("other", "spare")
        try begin("work", "corp")
        // A folder is in the place of the file that storing the sign-in may have left.
        try SealedVault(home: place.file("home")).open { throw HarnessError("the vault has a passphrase") }.update {
            var other = try #require($0.signIns["other"])
            other.formerSites = []
            try $0.updateSignIn(other)
        }
        let file = place.file("home/Certs/identities/other.pem")
        try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: true)
        let next = try place.sandbox.countersign("session", "list")
        #expect(next.error.contains("completed the wipe of \"work\""), "\(next.said)")
        #expect(next.error.contains("the wipe of \"other\" cannot be completed"), "\(next.said)")
        #expect(try bench.contents.signIns["work"] == nil && Array(bench.contents.wipes.keys) == ["other"])

        try FileManager.default.removeItem(atPath: file)
        let last = try place.sandbox.countersign("session", "list")
        #expect(last.error.contains("completed the wipe of \"other\""), "\(last.said)")
        #expect(try bench.contents.wipes.isEmpty)
    }

    /// An identity without a key, which a person has put there.
    @Test func aFileThatTheEnrolmentHasNotBroughtStays() throws {
        try enroll("work")
        let file = place.file("home/Certs/identities/work.pem")
        try FileManager.default.createDirectory(
            atPath: place.file("home/Certs/identities"), withIntermediateDirectories: true)
        try Data("# mine\n".utf8).write(to: URL(fileURLWithPath: file))
        let wiped = try place.sandbox.countersign("wipe", "work", "--yes")
        #expect(wiped.status == 0, "\(wiped.said)")
        #expect(try bench.contents.signIns["work"] == nil && TextFile.text(file) == "# mine\n")
    }

    private func serve() throws -> ChildProcess {
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0"], environment: try place.sandbox.environment(),
            folder: place.sandbox.folder.path, capture: place.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        return server
    }

    /// A server that stops does not wait for the provider's answer, and leaves the wipe to the next command.
    @Test func aServerDoesNotWaitForTheProviderOfAWipe() throws {
        try enroll("work")
        try begin("work", "corp")
        try place.provider.change(["fail": ["/revoke": "hang"]])
        let server = try serve()
        let hasAsked = poll {
            place.provider.requests.contains { $0.hasPrefix("POST /revoke") } ? true : nil
        }
        #expect(hasAsked == true, "\(server.errorOutput)")
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0, "\(server.errorOutput)")
        #expect(!server.errorOutput.contains("wipe"), "\(server.errorOutput)")
        #expect(try bench.contents.wipes["work"] != nil && bench.contents.tokens["work"] != nil)
        try place.provider.change(["fail": [String: String]()])
        let next = try place.sandbox.countersign("session", "list")
        #expect(next.error.contains("completed the wipe of \"work\""), "\(next.said)")
        try expectWiped("completed")
    }

    @Test func signingOutCompletesAWipeThatWasInterrupted() throws {
        try enroll("work")
        try begin("work", "corp")
        let done = try bench.countersign("unenroll", "work", "--no-sign-out")
        #expect(done.status == 0 && done.error.contains("completed the wipe of \"work\""), "\(done.said)")
        try expectWiped("signed out")
    }

    /// It is unknown which of the two has added a cookie.
    @Test func theCookiesOfASessionThatAnotherEnrolmentSharesStay() throws {
        let session: [String: any Sendable] = ["group": "sso", "host": "sso.corp.example", "cookies": ["sid"]]
        for (name, site) in [("one", "https://corp.example:8443"), ("two", "https://corp.example:9443")] {
            let profile = try place.provider.profile(["name": name, "sites": [site], "session": session])
            try place.sandbox.folder.write("\(name).json", profile)
            try enroll(name, key: SharedSession.Key(group: "sso", host: "sso.corp.example"))
        }
        let before = try bench.contents.sessions.values.filter { $0.key.group == "sso" }
        #expect(before.count == 1 && before.first?.cookies.count == 1)
        #expect(try bench.countersign("wipe", "one", "--yes").status == 0)
        #expect(try bench.contents.signIns["one"] == nil)
        #expect(try bench.contents.sessions.values.filter { $0.key.group == "sso" } == before)

        let end = try bench.countersign("unenroll", "two")
        #expect(end.status == 0, "\(end.said)")
        #expect(try !bench.contents.sessions.values.contains { $0.key.group == "sso" })
    }
}
