// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Synchronization
import Testing

@testable import Countersign

/// `enroll` and `unenroll` that are killed or interrupted.
@Suite(.waiting) struct SignInCrashTests {
    private let bench: SignInSandbox
    private static let own = "own.corp.example credential=work answer=bearer"
    private static let passphrase = "canary-passphrase"

    init() throws {
        bench = try SignInSandbox(profile: ["name": "work", "sites": ["https://old.corp.example"]])
        let next = try bench.provider.profile(["name": "work", "sites": ["https://new.corp.example"]])
        try bench.sandbox.folder.write("next.json", next)
    }

    private var list: String { "home/AllowedSites/signed-in.work.sites" }

    private func enroll() throws {
        let done = try bench.enroll()
        guard done.status == 0 else { throw HarnessError(done.said) }
        let text = TextFile.text(bench.file(list))
        if !text.contains(Self.own) { try bench.sandbox.folder.write(list, "\(text)\(Self.own)\n") }
    }

    /// The sign-in is gone with all its results, and the person's own line is left.
    private func expectNothingLeft(_ comment: Comment) throws {
        #expect(try bench.status.isEmpty, comment)
        let lines = TextFile.lines(bench.file(list)).filter { !$0.hasPrefix("#") }
        #expect(lines == [Self.own], comment)
        #expect(try !bench.sandbox.succeed("credential", "list", "--no-header").contains("work"), comment)
    }

    @Test func aKilledEnrolmentLeavesWhatUnenrollRemoves() throws {
        var count = 1
        while true {
            try enroll()
            let calls = try bench.sandbox.callsUnlessKilled(
                at: "rename", count, ["enroll", "next.json", "--yes"], environment: bench.environment)
            let comment = Comment(rawValue: "killed at rename \(count)")
            let done = try bench.sandbox.countersign("unenroll", "work")
            #expect(done.status == 0, "\(comment) \(done.said)")
            try expectNothingLeft(comment)
            if let calls {
                #expect(count > 1 && calls >= 6, "\(calls)")
                break
            }
            count += 1
            try #require(count < 40)
        }
    }

    /// If the sign-in is gone, its revocation has been requested from the provider.
    @Test(arguments: [("rename", 5), ("unlink", 2)])
    func aKilledSignOutCanBeCompleted(call: String, least: Int) throws {
        var count = 1
        while true {
            try enroll()
            let revoked = bench.provider.requests.count { $0 == "POST /revoke refresh_token 200" }
            let calls = try bench.sandbox.callsUnlessKilled(at: call, count, ["unenroll", "work"])
            let comment = Comment(rawValue: "killed at \(call) \(count)")
            if try !bench.status.isEmpty {
                let done = try bench.sandbox.countersign("unenroll", "work")
                #expect(done.status == 0, "\(comment) \(done.said)")
            }
            try expectNothingLeft(comment)
            #expect(bench.provider.requests.count { $0 == "POST /revoke refresh_token 200" } > revoked, comment)
            if let calls {
                #expect(count > 1 && calls >= least, "\(calls)")
                break
            }
            count += 1
            try #require(count < 40)
        }
    }

    /// The server that has the vault open learns of Ctrl-C, and keeps the tokens that it cannot revoke.
    @Test func anInterruptedSignOutKeepsTheSignIn() throws {
        try enroll()
        try bench.sandbox.succeed(
            "vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\n")
        let input = try bench.sandbox.folder.write("passphrase", "\(Self.passphrase)\n")
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0", "--password-stdin"],
            environment: try bench.sandbox.environment(), folder: bench.sandbox.folder.path, input: input,
            capture: bench.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        try bench.provider.change(["fail": ["/revoke": "hang"]])
        let command = try ChildProcess(
            try Sandbox.executable, ["unenroll", "work"], environment: try bench.sandbox.environment(),
            folder: bench.sandbox.folder.path, capture: bench.file("unenroll"))
        let isRevoking = poll { bench.provider.requests.contains { $0.contains("/revoke") } ? true : nil }
        try #require(isRevoking == true, "\(command.errorOutput)")
        command.send(SIGINT)
        _ = command.waitForExit()
        let state = try poll { () throws -> String? in
            let state = try bench.status.first?["state"] as? String ?? "removed"
            return state.contains("signing out was not completed") || state == "removed" ? state : nil
        }
        #expect(state?.contains("countersign unenroll") == true, "\(state ?? "")")
        try bench.provider.change([:])
        let done = try bench.sandbox.countersign("unenroll", "work")
        #expect(done.status == 0, "\(done.said)")
        #expect(bench.provider.requests.contains("POST /revoke refresh_token 200"))
        #expect(try bench.status.isEmpty)
    }

    /// The provider is about to send the tokens.
    @Test func anInterruptedEnrolmentRevokesItsTokens() throws {
        try bench.provider.change(["hold": ["authorization_code": 4]])
        let child = try ChildProcess(
            try Sandbox.executable, ["enroll", "next.json", "--yes"],
            environment: try bench.sandbox.environment(adding: bench.environment), folder: bench.sandbox.folder.path,
            capture: bench.file("enroll"))
        let isRedeeming = poll {
            bench.provider.requests.contains { $0.contains("/token") } ? true : nil
        }
        try #require(isRedeeming == true, "\(child.errorOutput)")
        child.send(SIGINT)
        #expect(child.waitForExit() == 130, "\(child.errorOutput)")
        #expect(bench.provider.requests.last == "POST /revoke access_token 200", "\(bench.provider.requests)")
        #expect(try bench.status.isEmpty)
    }

    /// The person has interrupted the command, which revokes the tokens, after the server has begun to store them.
    @Test func abandonedTokensAreNotStored() throws {
        let home = Home(path: bench.sandbox.home)
        let vault = try SealedVault(home: home.path).create(openedBy: .file)
        let operations = VaultOperations(home: home, vault: vault, now: { 0 })
        let new = NewSignIn(
            name: "work", profile: #"{"issuer":"https://id.corp.example","client_id":"c"}"#, source: "",
            issuer: "https://id.corp.example", subject: "", account: "", scope: "", sites: [], signedIn: 1, expires: 2,
            formerIssuer: nil)
        let tokens = SignInTokens(access: Secret(utf8: "a"), refresh: nil, identity: nil)
        let calls = Mutex(0)
        let dialogue = OperationDialogue(
            report: { _ in },
            isAbandoned: {
                calls.withLock { calls in
                    calls += 1
                    return calls > 1
                }
            })
        let error = #expect(throws: CountersignError.self) { try operations.storeSignIn(new, tokens, dialogue) }
        #expect(error?.detail == "the command was interrupted")
        #expect(vault.contents.signIns.isEmpty && vault.contents.tokens.isEmpty)
    }

    /// The vault has the new sign-in, and the list still has the lines of the one before. A server that was running
    /// when the enrolment was interrupted completes it, too.
    @Test(arguments: [false, true])
    func aServerCompletesTheList(isRunning: Bool) throws {
        try enroll()
        let running = isRunning ? try bench.sandbox.serve() : nil
        let vault = try SealedVault(home: bench.sandbox.home).open { throw HarnessError("there is a passphrase") }
        try vault.update { contents in
            guard var record = contents.signIns["work"] else { return }
            record.formerSites = record.sites
            record.sites = [record.sites[0].replacing("old.", with: "new.")]
            try contents.updateSignIn(record)
        }
        let server = try running ?? bench.sandbox.serve()
        defer { server.stop() }
        let isComplete = poll { () -> Bool? in
            let text = TextFile.text(bench.file(list))
            return text.contains("new.corp.example") && !text.contains("old.corp.example") ? true : nil
        }
        #expect(isComplete == true && TextFile.text(bench.file(list)).contains(Self.own))
        try bench.sandbox.succeed("unenroll", "work")
        try expectNothingLeft("completed")
    }

    /// Sites that cannot be added keep no others from the list.
    @Test func aServerCompletesTheListInSpiteOfAFault() throws {
        try enroll()
        let vault = try SealedVault(home: bench.sandbox.home).open { throw HarnessError("there is a passphrase") }
        try vault.update { contents in
            guard var record = contents.signIns["work"] else { return }
            record.formerSites = record.sites
            record.sites = [record.sites[0].replacing("old.", with: "new.")]
            try contents.updateSignIn(record)
            for number in 0..<4 {
                var faulty = SignInRecord(
                    name: "faulty\(number)", profile: record.profile, source: "", issuer: record.issuer, subject: "",
                    account: "", scope: "", sites: ["https://a.example colour=blue"], refreshToken: nil,
                    identityToken: nil, signedIn: 1, expires: 0)
                faulty.formerSites = []
                try contents.setSignIn(faulty, accessToken: Secret(utf8: "a"))
            }
        }
        let server = try bench.sandbox.serve()
        defer { server.stop() }
        let isComplete = poll { () -> Bool? in
            TextFile.text(bench.file(list)).contains("new.corp.example") ? true : nil
        }
        #expect(isComplete == true, "\(TextFile.text(bench.file(list)))")
    }

    // MARK: Tokens that cannot be stored yet

    /// Holds the lock of the sign-in's renewal, and runs `enroll` until it waits for it.
    private func enrollment(waitingFor lock: Int32) throws -> ChildProcess {
        try #require(flock(lock, LOCK_EX) == 0)
        let child = try ChildProcess(
            try Sandbox.executable, ["enroll", "next.json", "--yes"],
            environment: try bench.sandbox.environment(adding: bench.environment), folder: bench.sandbox.folder.path,
            capture: bench.file("enroll"))
        let isWaiting = poll { child.errorOutput.contains("waiting for it") ? true : nil }
        try #require(isWaiting == true, "\(child.errorOutput)")
        return child
    }

    private func renewalLock() throws -> Int32 {
        let lock = open("\(bench.sandbox.home)/run/refresh-sign-in-work.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(lock >= 0)
        return lock
    }

    @Test func tokensThatThePersonDoesNotWaitForAreRevoked() throws {
        try enroll()
        let lock = try renewalLock()
        defer { close(lock) }
        let child = try enrollment(waitingFor: lock)
        child.send(SIGINT)
        #expect(child.waitForExit() == 130, "\(child.errorOutput)")
        #expect(child.errorOutput.contains("the provider has revoked them"), "\(child.errorOutput)")
        #expect(bench.provider.requests.last == "POST /revoke access_token 200", "\(bench.provider.requests)")
        #expect(try bench.status.first?["sites"] as? [String] ?? [] != [], "the former sign-in is gone")
        #expect(TextFile.text(bench.file(list)).contains("old.corp.example"))
    }

    @Test func aSignInWaitsForTheRenewalOfTheOneBefore() throws {
        try enroll()
        let lock = try renewalLock()
        let child = try enrollment(waitingFor: lock)
        flock(lock, LOCK_UN)
        close(lock)
        #expect(child.waitForExit() == 0, "\(child.errorOutput)")
        #expect(TextFile.text(bench.file(list)).contains("new.corp.example"))
    }

    /// While the person signs in, another profile's sign-in gets the name.
    @Test func aSignInThatWasStoredMeanwhileIsNotReplacedByThatOfAnotherProvider() throws {
        let other = try SignInProvider()
        try bench.sandbox.folder.write("other.json", try other.profile(["name": "work"]))
        try bench.write(
            browser: """
                #!/bin/sh
                if mkdir nested 2> /dev/null; then
                    countersign enroll other.json --yes --name work > nested/said 2>&1
                fi
                exec curl -sSL --noproxy '*' -o /dev/null "$1"
                """)
        let result = try bench.enroll()
        #expect(result.status == 1 && result.error.contains("was stored meanwhile"), "\(result.said)")
        let said = TextFile.text(bench.file("nested/said"))
        #expect(try bench.status.first?["issuer"] as? String == other.issuer, "\(said)")
        #expect(bench.provider.requests.last == "POST /revoke access_token 200", "\(result.said)")
    }
}
