// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCookies
import CountersignCryptography
import CountersignHome
import CountersignSignIn
import CountersignVault
import FoundationEssentials
import Glibc

/// Performs a command's operations: in the home's running server while it has the vault open, otherwise in this
/// process, which then opens the vault and may ask for its passphrase.
final class VaultSession: OperationPerformer {
    private let access: VaultAccess
    private let creates: Bool
    private var server: VaultServer?
    private var local: VaultOperations?
    /// The names of the wipes that this command has completed although it is for something else.
    private(set) var completedWipes: Set<String> = []

    init(access: VaultAccess, creates: Bool, server: VaultServer?) {
        self.access = access
        self.creates = creates
        self.server = server
    }

    /// Opens the vault unless the server performs the operations: its passphrase precedes the command's own secrets on
    /// standard input.
    func prepare() throws {
        if server == nil { _ = try operations() } else { Startup.reportHardening() }
    }

    /// The operations in this process, on a vault that it has opened.
    func operations() throws -> VaultOperations {
        if let local { return local }
        let vault = creates ? try access.openOrCreate() : try access.openIfThere()
        let operations = VaultOperations(home: access.home, vault: vault, now: { Int64(time(nil)) })
        local = operations
        completeWipes(operations)
        return operations
    }

    /// Completes the wipes of an earlier `countersign wipe` that was killed.
    private func completeWipes(_ operations: VaultOperations) {
        for (name, result) in operations.completeWipes() {
            do {
                let done = try result.get()
                completedWipes.insert(name)
                Console.log("info", "completed the wipe of \(name.debugDescription), which was interrupted")
                if let warning = done.warning { Unrevoked.warn(warning) }
            } catch {
                for diagnostic in Diagnostic.all(in: error) {
                    Console.warning(
                        "the wipe of \(name.debugDescription) cannot be completed: \(diagnostic.message)",
                        hint: diagnostic.hint)
                }
            }
        }
    }

    /// Performs one operation. Opens the vault in this process if the server cannot perform it. Throws if the dialogue,
    /// which is polled, is abandoned.
    func perform<Operation: VaultOperation>(
        _ operation: Operation, secret: Secret? = nil, _ dialogue: OperationDialogue
    ) throws -> Operation.Result {
        if let server, server.offers(Operation.self) {
            let result = try server.perform(operation, secret: secret, dialogue, declined: VaultAccess.opensVault)
            if let result { return result }
            self.server = nil
        }
        return try operations().perform(operation, secret: secret, dialogue)
    }

    /// Performs one operation without progress.
    func perform<Operation: VaultOperation>(_ operation: Operation, secret: Secret?) throws -> Operation.Result {
        try perform(operation, secret: secret, .silent)
    }

    /// Makes a running server read the home at once, if this process has changed it. Otherwise the server does so
    /// within a second.
    func refreshServer() {
        guard local != nil, let server = VaultServer(of: access.home) else { return }
        // Every operation begins with that.
        _ = try? server.perform(ListNames())
    }

    /// The shared session of a profile for a window. If the server performs the operations, the window gets the
    /// session's cookies from the server's proxy, and none from this process.
    func cookies(of scope: SessionScope) -> SharedCookies {
        let key = SharedSession.Key(group: scope.group, host: scope.host.text)
        return SharedCookies(scope, stored: local?.session(key))
    }

    /// Adds the cookies that a window has reported to their session.
    func store(_ cookies: SharedCookies) throws { try cookies.store(in: self) }
}
