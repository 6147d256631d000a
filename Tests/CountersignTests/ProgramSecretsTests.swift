// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Logging
import Testing

@testable import Countersign

/// When the programs of credentials run, and what becomes of what they write.
@Suite(.waiting) struct ProgramSecretsTests {
    private let folder: TemporaryFolder
    private let home: Home
    private let vault: OpenVault
    private let program: String

    init() throws {
        folder = try TemporaryFolder("programs")
        home = Home(path: folder.file("home"))
        vault = try SealedVault(home: home.path).openOrCreate { throw CountersignError(.environment, "unasked") }
        // Notes each run, and writes the first line of a file.
        program = try folder.write(
            program: "teller",
            "#!/bin/sh\necho run >> '\(folder.file("runs"))'\nexec /bin/cat '\(folder.file("secret"))'\n")
    }

    private var runs: Int { TextFile.lines(folder.file("runs")).count }

    private func set(_ user: String?, keepSeconds: Int64? = nil) throws {
        try vault.update { try $0.setProgram(name: "work", user: user, words: [program], keepSeconds: keepSeconds) }
    }

    private func secrets() -> ProgramSecrets {
        let secrets = ProgramSecrets(logger: Self.logger, now: { 1_800_000_000 })
        secrets.update(vault.contents.programs)
        secrets.wait()
        return secrets
    }

    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func keeper() throws -> PolicyKeeper {
        try PolicyKeeper(
            home: home, interception: .never, environment: [:], logger: Self.logger, now: { 1_800_000_000 }
        ) { throw CountersignError(.environment, "unasked") }
    }

    private func password(_ keeper: PolicyKeeper) -> Secret? {
        guard case .password(let credential) = keeper.policy.current.credential(named: "work") else { return nil }
        return credential.password
    }

    /// Reads the home until the answer is not nil.
    private func refreshed<Answer>(_ keeper: PolicyKeeper, _ question: () -> Answer?) -> Answer? {
        poll {
            keeper.refresh()
            return question()
        }
    }

    @Test func thePolicyHasWhatTheProgramWrote() throws {
        try folder.write("secret", "canary-1\n")
        try set("jdoe")
        let keeper = try keeper()
        #expect(password(keeper) == Secret(utf8: "canary-1"))
        keeper.refresh(force: true)
        #expect(runs == 1)
        keeper.lock()
        #expect(password(keeper) == nil)
        try folder.write("secret", "canary-2\n")
        try keeper.unlock(passphrase: nil)
        #expect(refreshed(keeper) { password(keeper) } == Secret(utf8: "canary-2"))
    }

    @Test func aProgramThatIsSetWhileThePolicyIsInUseRuns() throws {
        try folder.write("secret", "canary-token\n")
        let keeper = try keeper()
        try set(nil)
        let token = refreshed(keeper) { () -> Secret? in
            guard case .token(let token) = keeper.policy.current.credential(named: "work") else { return nil }
            return token.token
        }
        #expect(token == Secret(utf8: "canary-token"))
        try vault.update { $0.removeCredential(named: "work") }
        keeper.refresh()
        #expect(keeper.policy.current.credential(named: "work") == nil)
    }

    /// The seconds of the tests' clock are those of 2027-01-15T08:00:00Z.
    @Test func thePolicyHasTheKeysThatTheProgramWrote() throws {
        let keys = #"{"Version":1,"AccessKeyId":"ASIA","SecretAccessKey":"canary","SessionToken":"canary-session""#
        try folder.write("secret", keys + #","Expiration":"2027-01-15T09:00:00Z"}"#)
        try vault.update { try $0.setProgram(name: "work", .awsKeys, words: [program], keepSeconds: nil) }
        let credential = try #require(try keeper().policy.current.awsKeys["work"])
        #expect(credential.keys.sessionToken == Secret(utf8: "canary-session"))
        #expect(credential.keys.expires == 1_800_003_600)
        try folder.write("secret", keys + #","Expiration":"2027-01-15T08:00:00Z"}"#)
        let fault = secrets().written.faults["work"] ?? ""
        #expect(
            fault.contains("the keys have expired at 2027-01-15T08:00:00Z") && !fault.contains("canary"), "\(fault)")
        try folder.write("secret", "canary\n")
        let other = secrets().written.faults["work"] ?? ""
        #expect(other.contains("not the JSON of AWS' credential_process") && !other.contains("canary"), "\(other)")
    }

    /// New keys are got five minutes before the end of the old ones, and at most once a minute.
    @Test(
        arguments: [
            (nil, nil, nil), (900, nil, 900), (nil, 1_000, 700), (900, 1_000, 700), (60, 1_000, 60), (nil, 301, 60),
            (nil, 0, 60),
        ] as [(Int64?, Int64?, Int64?)])
    func keysAreReplacedBeforeTheyExpire(keep: Int64?, left: Int64?, kept: Int64?) {
        let now: Int64 = 1_800_000_000
        #expect(ProgramSecrets.keptSeconds(keep, until: left.map { now + $0 }, now: now) == kept)
    }

    @Test func theReasonOfAFailureIsInThePolicy() throws {
        try set("jdoe")
        let keeper = try keeper()
        #expect(password(keeper) == nil)
        let reason = keeper.policy.current.unwritten["work"]?.text ?? ""
        #expect(reason.hasPrefix("credential \"work\" has no secret: \(program) ended with status 1 ("), "\(reason)")
        #expect(reason.contains("No such file or directory"), "\(reason)")
    }

    @Test func whatIsNoTokenIsNotUsed() throws {
        try folder.write("secret", "Bearer canary\n")
        try set(nil)
        let fault = secrets().written.faults["work"] ?? ""
        #expect(fault.contains("wrote something that is not a bearer token") && !fault.contains("canary"))
    }

    /// A second rejection of the same secret does not help.
    @Test func aRejectionRunsTheProgramOnce() throws {
        try folder.write("secret", "canary-1\n")
        try set("jdoe")
        let secrets = secrets()
        let reference = try #require(secrets.written.passwords["work"]).reference
        for _ in 1...3 {
            secrets.rejected(reference)
            secrets.wait()
        }
        #expect(runs == 2 && secrets.written.passwords["work"]?.password == Secret(utf8: "canary-1"))
        try folder.write("secret", "canary-2\n")
        let changed = self.secrets()
        try folder.write("secret", "canary-3\n")
        changed.rejected(reference)
        changed.wait()
        #expect(changed.written.passwords["work"]?.password == Secret(utf8: "canary-3"))
        changed.rejected(reference)
        changed.wait()
        #expect(runs == 5)
        changed.rejected(CredentialReference(name: "work", source: .vault(generation: 99)))
        changed.rejected(CredentialReference(name: "other", source: .vault(generation: 1)))
        changed.wait()
        #expect(runs == 5)
    }

    @Test func aProgramRunsAgainAfterItsTime() throws {
        try folder.write("secret", "canary-1\n")
        try set("jdoe", keepSeconds: 1)
        let secrets = secrets()
        try folder.write("secret", "canary-2\n")
        let found: Bool? = poll {
            secrets.runDue()
            return secrets.written.passwords["work"]?.password == Secret(utf8: "canary-2") ? true : nil
        }
        #expect(found == true)
    }
}
