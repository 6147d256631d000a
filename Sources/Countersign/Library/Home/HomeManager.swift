// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignHome
import CountersignVault
public import FoundationEssentials

/// Manages a home from a program: its credentials, client identities, sites, trust and vault. The `countersign` command
/// performs the same operations for a person.
///
/// A manager's changes take effect at once in every process that uses the home: in a ``ChallengeController``, a proxy,
/// a running `countersign serve`, and other managers, which report them as ``changes``. All methods are thread-safe and
/// do their file operations on another thread. They throw ``ChallengeError``, with the codes that each method names and
/// those of the home and the vault (`homeUnreadable`, `homeFaulty`, `vaultLocked`, `vaultFaulty`), or
/// `CancellationError` if the task is cancelled. After an error, nothing has changed.
///
/// If the vault requires a passphrase and no closure was given, the home's running server performs the operations while
/// it has the vault open.
public final class HomeManager: Sendable {
    let vault: HomeVault
    var home: Home { vault.home }
    /// The controller that this was made from; nil for a manager of its own.
    var controller: ChallengeController? { vault.controller }
    private let canAsk: Bool
    let watch: ChangeWatch

    /// Manages the home in the folder `home`; by default, the home that the `countersign` command uses. Nothing is read
    /// or created yet: the first change creates the folder and its vault if they do not exist.
    ///
    /// `passphrase` is called on another thread when the vault is opened, if it requires a passphrase. Throws
    /// ``ChallengeError`` with the code `homeMissing` if the user has no home folder.
    public init(
        home: URL? = nil, passphrase: (@Sendable () throws -> Password)? = nil
    ) throws(ChallengeError) {
        let environment = ProcessInfo.processInfo.environment
        let home = try ChallengeController.locate(ChallengeController.path(of: home), environment)
        vault = HomeVault(home, passphrase: passphrase)
        canAsk = passphrase != nil
        watch = ChangeWatch(home)
    }

    /// Manages the home of a controller, with the vault that the controller has opened. Changes are in effect for the
    /// controller when a method returns.
    public init(_ controller: ChallengeController) {
        vault = HomeVault(controller)
        canAsk = true
        watch = ChangeWatch(vault.home)
    }

    /// The folder of the home.
    public var folder: URL { URL(filePath: home.path, directoryHint: .isDirectory) }

    // MARK: Operations

    /// Runs `body` with the vault, on a thread that may block. `missing` is the code of an error about a name that does
    /// not exist. Without a vault, `body` receives nil unless `creates` is set.
    func onVault<Value: Sendable>(
        creates: Bool = false, missing: ChallengeError.Code = .valueFaulty,
        report: @escaping @Sendable (RenewalProgress) -> Void = { _ in },
        _ body: @escaping @Sendable (any OperationPerformer) throws -> Value
    ) async throws -> Value {
        if !canAsk, let value = try await onServer(missing: missing, report: report, body) { return value }
        return try await vault.withOperations(creates: creates, report: report) { [home] vault in
            do {
                let none = VaultOperations(home: home, vault: nil, now: ChallengeController.now)
                return try body(vault ?? OwnPerformer(operations: none))
            } catch {
                throw ChallengeError(managing: error, missing: missing)
            }
        }
    }

    /// The same in the home's running server; nil if the vault needs no passphrase, or no server has it open.
    private func onServer<Value: Sendable>(
        missing: ChallengeError.Code, report: @escaping @Sendable (RenewalProgress) -> Void,
        _ body: @escaping @Sendable (any OperationPerformer) throws -> Value
    ) async throws -> Value? {
        try await blocking(missing: missing) { [home] in
            guard (try? home.vault.status().key) == .passphrase, let server = VaultServer(of: home) else { return nil }
            return try body(ServerPerformer(server: server, report: report))
        }
    }

    /// Runs `body` on a thread that may block.
    func blocking<Value: Sendable>(
        missing: ChallengeError.Code = .valueFaulty, _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            vault.queue.async { continuation.resume(returning: Result { try body() }) }
        }
        if let controller { await controller.reading { $0.refresh() } }
        do {
            return try result.get()
        } catch {
            try Task.checkCancellation()
            throw ChallengeError(managing: error, missing: missing)
        }
    }
}

/// Operations in a running server.
private struct ServerPerformer: OperationPerformer {
    let server: VaultServer
    let report: @Sendable (RenewalProgress) -> Void

    func perform<Operation: VaultOperation>(_ operation: Operation, secret: Secret?) throws -> Operation.Result {
        guard server.offers(Operation.self),
            let result = try server.perform(operation, secret: secret, OperationDialogue(report: report))
        else {
            throw ChallengeError(
                .vaultLocked, "the vault requires a passphrase, and the running server cannot perform the operation",
                hint: "pass `passphrase:` to the manager's initialiser", fault: .caller)
        }
        return result
    }
}

extension ChallengeError {
    /// Converts an error of managing a home. `missing` is the code if a name does not exist.
    init(managing error: any Error, missing: Code) {
        let code: Code
        switch error {
        case let error as CountersignError:
            switch error.code {
            case .unknownName: code = missing
            case .nameInUse: code = .nameInUse
            case .notRunning: code = .notRunning
            case .wrongPassphrase: code = .vaultLocked
            case .configuration, .refused: code = .valueFaulty
            case .environment: code = .homeUnreadable
            }
        case let error as VaultError where error.code == .invalidRecord: code = .valueFaulty
        case let error as VaultError where error.code == .nameInUse: code = .nameInUse
        case is HostNameError: code = .valueFaulty
        default:
            self.init(refreshing: error)
            return
        }
        let diagnostic = Diagnostic.all(in: error).first
        self.init(code, diagnostic?.message ?? "\(error)", hint: diagnostic?.hint)
    }
}
