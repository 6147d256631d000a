// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignSignIn
import CountersignVault
import Dispatch
import Synchronization

/// The vault of a home for the parts of the library that manage one. It is opened once, by a controller or with a
/// passphrase from the app, and used on a thread that may block.
final class HomeVault: Sendable {
    let home: Home
    /// The controller that has opened the vault; nil if this opens it.
    let controller: ChallengeController?
    private let passphrase: (@Sendable () throws -> Password)?
    /// The vault, once it was opened without a controller.
    private let vault = Mutex<OpenVault?>(nil)
    /// The passphrase that has opened it.
    private let remembered = Mutex<Secret?>(nil)
    /// Runs operations on the vault one at a time.
    let queue = DispatchQueue(label: "countersign.vault")

    /// `passphrase` is called on another thread when the vault is opened, if it requires a passphrase.
    init(_ home: Home, passphrase: (@Sendable () throws -> Password)?) {
        self.home = home
        self.passphrase = passphrase
        controller = nil
    }

    init(_ controller: ChallengeController) {
        home = controller.keeper.home
        self.controller = controller
        passphrase = nil
    }

    /// Runs `body` with the vault on a thread that may block; nil if the home has none and `creates` is not set. Throws
    /// ``ChallengeError``, or `CancellationError` if the task was cancelled. By default, one body runs at a time.
    func withOperations<Value: Sendable>(
        on own: DispatchQueue? = nil, creates: Bool, pageEnd: @escaping @Sendable () -> PageEnd? = { nil },
        report: @escaping @Sendable (RenewalProgress) -> Void = { _ in },
        _ body: @escaping @Sendable ((any OperationPerformer)?) throws -> Value
    ) async throws -> Value {
        let isAbandoned = Atomic(false)
        let result: Result<Value, any Error> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                (own ?? queue).async { [self] in
                    continuation.resume(
                        returning: Result {
                            try body(
                                try performer(
                                    creates: creates, report: report, pageEnd: pageEnd,
                                    isAbandoned: { isAbandoned.load(ordering: .relaxed) }))
                        })
                }
            }
        } onCancel: {
            isAbandoned.store(true, ordering: .relaxed)
        }
        if let controller { await controller.reading { $0.refresh() } }
        do {
            return try result.get()
        } catch {
            try Task.checkCancellation()
            throw ChallengeError(signingIn: error)
        }
    }

    /// Runs `body` with the opened vault, on a thread that may block. Without `creates`, a missing vault is an error.
    /// Throws ``ChallengeError`` with the codes of the vault.
    func withOpenVault<Value: Sendable>(
        creates: Bool = false, _ body: @escaping @Sendable (OpenVault) throws -> Value
    ) async throws -> Value {
        do {
            return try await blocking { [self] in
                guard let vault = try opened(creates: creates) else {
                    throw ChallengeError(
                        .vaultFaulty, "there is no vault in \(home.path)", hint: "store a credential first")
                }
                return try body(vault)
            }
        } catch {
            throw ChallengeError(signingIn: error)
        }
    }

    /// Operations on the vault. Ones that ask the provider end early if `isAbandoned` returns true.
    private func performer(
        creates: Bool, report: @escaping @Sendable (RenewalProgress) -> Void,
        pageEnd: @escaping @Sendable () -> PageEnd?, isAbandoned: @escaping @Sendable () -> Bool
    ) throws -> (any OperationPerformer)? {
        guard let vault = try opened(creates: creates) else { return nil }
        let operations = VaultOperations(home: home, vault: vault, now: ChallengeController.now)
        return OwnPerformer(
            operations: operations,
            dialogue: OperationDialogue(report: report, isAbandoned: isAbandoned, pageEnd: pageEnd))
    }

    /// The vault with its newest contents; nil if the home has none and `creates` is not set. Opens it again, which
    /// asks for the passphrase, if another process has changed that or has removed the home.
    func opened(creates: Bool) throws -> OpenVault? {
        guard let known = try lastOpened(creates: creates) else { return nil }
        do throws(VaultError) {
            try known.reload()
            return known
        } catch {
            guard controller == nil, error.code == .passphraseNeeded || error.code == .missing else { throw error }
        }
        vault.withLock { if $0 === known { $0 = nil } }
        return try lastOpened(creates: creates)
    }

    /// The vault if it is open, or can be opened without a person.
    var openedSilently: OpenVault? {
        if let controller { return controller.keeper.vault }
        if let vault = vault.withLock({ $0 }) { return vault }
        guard (try? home.vault.status().key) == .file else { return nil }
        return try? lastOpened(creates: false)
    }

    /// The passphrase that has opened the vault, or the answer of the closure.
    func passphraseOnce() throws -> Secret {
        if let known = remembered.withLock({ $0 }) { return known }
        return try ChallengeController.asked(passphrase)
    }

    private func lastOpened(creates: Bool) throws -> OpenVault? {
        if let controller {
            if let vault = controller.keeper.vault { return vault }
            guard !controller.keeper.isLocked else {
                throw ChallengeError(.vaultLocked, HomeSnapshot.vaultIsLocked, hint: "unlock it")
            }
        }
        return try vault.withLock { vault in
            if let vault { return vault }
            let file = SealedVault(home: home.path)
            if try !file.exists() {
                try file.checkNotLost()
                guard creates else { return nil }
                try home.prepare()
            }
            var refusal: ChallengeError?
            do {
                vault = try file.openOrCreate { () throws in
                    do throws(ChallengeError) {
                        let given = try ChallengeController.asked(passphrase)
                        remembered.withLock { $0 = given }
                        return given
                    } catch {
                        refusal = error
                        throw error
                    }
                }
            } catch {
                throw refusal ?? error
            }
            return vault
        }
    }

    /// Runs `body` on a thread that may block.
    func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
