// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignDeviceManagement
import CountersignHome
import CountersignVault
import Dispatch
import Glibc
import Synchronization

/// Installs the configuration profiles that the pages of a sign-in deliver. Each is shown on the terminal, and
/// installed only if the person agrees there: `--yes` is an answer to another question.
///
/// Unchecked because of the session. The command does not use it while the sign-in runs, and profiles are installed one
/// after the other.
final class SignInProfileInstaller: ProfileInstalling, @unchecked Sendable {
    private let session: VaultSession
    private let home: Home
    private let queue = DispatchQueue(label: "countersign.profiles")
    private let signIn: String
    /// Held from the first profile on.
    private var lock: RenewalLock?
    private var installed: [String] = []

    init(session: VaultSession, home: Home, signIn: String) {
        self.session = session
        self.home = home
        self.signIn = signIn
    }

    func install(_ document: [UInt8], from host: String, for signIn: String) async throws -> String {
        let question = Question()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                queue.async { continuation.resume(with: Result { try self.install(document, from: host, question) }) }
            }
        } onCancel: {
            question.abandon()
        }
    }

    /// The question to the person about a profile. When it is abandoned, the terminal stops waiting.
    private final class Question: Sendable {
        private let state = Mutex(false)

        var isAbandoned: Bool { state.withLock(\.self) }

        func abandon() { state.withLock { $0 = true } }

        func isAgreed(to text: String) throws -> Bool {
            guard let terminal = Terminal() else {
                throw CountersignError(.environment, "there is no terminal to ask for confirmation")
            }
            guard let answer = terminal.confirms(text, isAbandoned: { isAbandoned }) else { throw CancellationError() }
            return answer
        }
    }

    private func install(_ document: [UInt8], from host: String, _ question: Question) throws -> String {
        guard !question.isAbandoned else { throw CancellationError() }
        let read = try home.readProfile(document, at: Int64(time(nil)))
        if lock == nil { lock = try VaultOperations.enrollingLock(of: signIn, in: home) }
        guard lock != nil else {
            throw CountersignError(
                .refused, "another process is signing in as \(signIn.debugDescription) and installs a profile")
        }
        let installer = ProfileInstaller(session: session, home: home)
        let plan = try installer.plan(read) { name throws(CountersignError) in
            guard let terminal = Terminal() else {
                throw CountersignError(.environment, "it needs its password, and there is no terminal to ask for it")
            }
            let text = "The password of the identity \(PrintableText.quote(name)): "
            guard let password = terminal.prompt(text, isAbandoned: { question.isAbandoned }) else {
                // Control-C is a key there, and ends the whole sign-in.
                if !question.isAbandoned { kill(getpid(), SIGINT) }
                question.abandon()
                throw CountersignError(.refused, "it was cancelled")
            }
            return password
        }
        guard !question.isAbandoned else { throw CancellationError() }
        let former = plan.former
        guard former == nil || former?.owner?.signIn == signIn else {
            throw CountersignError(
                .nameInUse,
                "the profile \(read.profile.identifier) is installed already, and not by the sign-in \"\(signIn)\"",
                hint: "remove it with `countersign profile remove \(read.profile.identifier)`")
        }
        // The previous sign-in's version can no longer be restored; the new version stays.
        let isPending = former?.owner?.isPending ?? true
        let sentence = try installer.install(
            plan, isAgreed: false, skipsRefused: false,
            owner: ProfileRecord.Owner(signIn: signIn, isPending: isPending)
        ) { text in
            try question.isAgreed(to: "\(text)Install the profile from \(Console.printable(host))?")
        }
        if isPending { installed.append(read.profile.identifier) }
        return sentence
    }

    /// Removes the installed profiles, because the sign-in has failed. If that fails as well, the next command removes
    /// them.
    func rollBack() {
        queue.sync {
            for identifier in installed {
                do {
                    guard let removed = try session.perform(RemoveProfile(identifier: identifier)).done else {
                        continue
                    }
                    Console.log("info", "the profile \"\(removed.name)\" was removed, because the sign-in has failed")
                } catch {
                    let reason = Diagnostic.all(in: error).map(\.message).joined(separator: "; ")
                    Console.warning(
                        "the profile \(identifier) is not removed yet: \(reason)",
                        hint: "the next command does it, or `countersign profile remove \(identifier)`")
                }
            }
            installed = []
            lock = nil
        }
    }
}
