// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignVault
import Dispatch
import Logging
import Synchronization

/// What programs have written for the credentials of a vault that name one.
struct WrittenSecrets: Equatable, Sendable {
    var passwords: [String: PasswordCredential] = [:]
    var tokens: [String: TokenCredential] = [:]
    var awsKeys: [String: AWSCredential] = [:]
    /// By the names of the credentials that have no secret: why that is so.
    var faults: [String: String] = [:]

    var refusals: [String: Refusal] { faults.mapValues { Refusal(.other, $0) } }
}

/// Runs the programs that write the secrets of credentials, and keeps the secrets in memory for as long as each may be
/// kept. A program is run again after that time, before the keys that it has written expire, after a failure, and once
/// when a site has rejected its secret. The former secret stays in use meanwhile.
///
/// Programs run on threads of their own. No method waits for one, but ``wait()``.
final class ProgramSecrets: Sendable {
    private enum Output: Equatable {
        /// A password or token.
        case line(Secret)
        case keys(AWSKeys)

        /// In seconds since 1970.
        var expires: Int64? { if case .keys(let keys) = self { keys.expires } else { nil } }
    }

    private struct Entry {
        let program: ProgramCredential
        /// What it has written last; nil if it has failed or has not ended yet.
        var secret: Output?
        var fault: String
        var isRunning = false
        /// When it is run again; nil for never.
        var due: ContinuousClock.Instant?
        /// A site has rejected the secret, and the program has been run since.
        var isRejected = false
    }

    private let logger: Logger
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64
    private let entries = Mutex<[String: Entry]>([:])
    private let running = DispatchGroup()

    private static let queue = DispatchQueue(label: "countersign.programs", attributes: .concurrent)
    /// How long after a failure a program is run again: one that asks a person must not do so all the time.
    private static let pause = Duration.seconds(300)
    /// How long before the end of keys new ones are got, and how often at most.
    private static let lead: Int64 = 300
    private static let shortest: Int64 = 60

    /// `now` returns seconds since 1970.
    init(logger: Logger, now: @escaping @Sendable () -> Int64) {
        self.logger = logger
        self.now = now
    }

    /// The secrets, as they are now.
    var written: WrittenSecrets {
        entries.withLock { entries in
            var written = WrittenSecrets()
            for (name, entry) in entries {
                let generation = entry.program.generation
                guard let secret = entry.secret else {
                    written.faults[name] = "credential \"\(name)\" has no secret: \(entry.fault)"
                    continue
                }
                switch secret {
                case .keys(let keys):
                    written.awsKeys[name] = AWSCredential(name: name, keys: keys, generation: generation)
                case .line(let secret):
                    guard let user = entry.program.user else {
                        written.tokens[name] = TokenCredential(name: name, token: secret, generation: generation)
                        continue
                    }
                    written.passwords[name] = PasswordCredential(
                        name: name, user: user, password: secret, generation: generation)
                }
            }
            return written
        }
    }

    /// Forgets the secrets of other credentials than `programs`, by name, and begins to run those that are new.
    func update(_ programs: [String: ProgramCredential]) {
        entries.withLock { entries in
            entries = entries.filter { programs[$0.key] == $0.value.program }
            for (name, program) in programs where entries[name] == nil {
                entries[name] = Entry(program: program, fault: "its program has not ended yet", due: .now)
            }
        }
        runDue()
    }

    /// Begins to run the programs whose time has come.
    func runDue() {
        let due = entries.withLock { entries -> [ProgramCredential] in
            let now = ContinuousClock.now
            var due: [ProgramCredential] = []
            for (name, entry) in entries where !entry.isRunning && entry.due.map({ $0 <= now }) == true {
                entries[name]?.isRunning = true
                due.append(entry.program)
            }
            return due
        }
        for program in due {
            Self.queue.async(group: running) { [self] in run(program) }
        }
    }

    /// Waits until all programs have ended that run now, or are ended because they take too long.
    func wait() { running.wait() }

    /// A site has rejected a credential. Its program is run once more, in case the secret has changed.
    func rejected(_ credential: CredentialReference) {
        let isNew = entries.withLock { entries in
            guard let entry = entries[credential.name], entry.secret != nil, !entry.isRejected,
                credential.source == .vault(generation: entry.program.generation)
            else { return false }
            entries[credential.name]?.isRejected = true
            entries[credential.name]?.due = .now
            return true
        }
        if isNew { runDue() }
    }

    /// Blocks for as long as the program takes.
    private func run(_ program: ProgramCredential) {
        let result = Result<Output, CountersignError> { () throws(CountersignError) in try output(of: program) }
        let now = ContinuousClock.now
        let isWanted = entries.withLock { entries in
            guard var entry = entries[program.name], entry.program == program else { return false }
            entry.isRunning = false
            switch result {
            case .success(let secret):
                // The same secret would be rejected again.
                if entry.secret != secret {
                    entry.secret = secret
                    entry.isRejected = false
                }
                entry.due = Self.keptSeconds(program.keepSeconds, until: secret.expires, now: self.now())
                    .map { now + .seconds($0) }
            case .failure(let error):
                entry.secret = nil
                entry.fault = error.detail
                entry.isRejected = false
                entry.due = now + Self.pause
            }
            entries[program.name] = entry
            return true
        }
        if isWanted, case .failure(let error) = result {
            logger.warning(
                "credential \"\(program.name)\" has no secret: \(error.detail)",
                metadata: error.hint.map { ["hint": "\($0)"] })
        }
    }

    private func output(of program: ProgramCredential) throws(CountersignError) -> Output {
        func secret(_ what: String) -> ProgramSecret { ProgramSecret(program.words, what: what, reportsErrors: true) }
        switch program.written {
        case .awsKeys: return .keys(try secret("the keys of AWS").readAWSKeys(now: now()))
        case .password(let user): return .line(try secret("the password of \(user)").read())
        case .token:
            let token = try secret("the token").read()
            guard TokenCredential.isStorable(token) else {
                throw CountersignError(
                    .environment, "\(program.words.first ?? "") wrote something that is not a bearer token")
            }
            return .line(token)
        }
    }

    /// For how many seconds a secret that ends at `expires` is used before its program is run again: at most for
    /// `keepSeconds`. Nil without an end. Times are in seconds since 1970.
    static func keptSeconds(_ keepSeconds: Int64?, until expires: Int64?, now: Int64) -> Int64? {
        guard let expires else { return keepSeconds }
        let left = max(shortest, expires - now - lead)
        return min(left, keepSeconds ?? left)
    }
}
