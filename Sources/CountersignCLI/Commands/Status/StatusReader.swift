// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignHome
import CountersignNegotiate
import CountersignReporting
import CountersignSitePolicy
import CountersignVault
import Glibc

/// Reads the ``HomeStatus`` of a home, from its files and its running server. Asks for no passphrase and sends nothing
/// to the network. A fault of one part does not hide the others.
struct StatusReader {
    let home: Home
    let secrets: SecretInput
    /// In seconds since 1970.
    let now: Int64

    func read() throws -> HomeStatus {
        var status = HomeStatus(now: now, path: home.path, version: ProductVersion.short)
        status.isThere = try home.exists()
        status.server = server()
        status.isPaused = home.isPaused
        readVault(&status)
        status.sites = sites(status.contents)
        noting(&status) { $0.blocked = BlockedCredential.all(in: try BreakerFile(home: home) { now }.read(), at: now) }
        noting(&status) { $0.endings = try Ending.ofCertificates(in: home) }
        if let contents = status.contents {
            status.endings += contents.renewals.compactMap { Ending($0, at: now) }
            status.endings += contents.signIns.compactMap { Ending($0) }
        }
        status.faults += home.ignoredAnchorFiles
        status.ticket = UserTicket.cached(at: now)
        return status
    }

    /// Adds the error to the faults.
    private func noting(_ status: inout HomeStatus, _ read: (inout HomeStatus) throws -> Void) {
        do { try read(&status) } catch { status.faults += Diagnostic.all(in: error) }
    }

    private func server() -> HomeStatus.Server {
        do {
            return .running(try ControlSocket.ask(.status, of: home))
        } catch {
            if let error = error as? CountersignError, error.code == .notRunning { return .none }
            let diagnostic = Diagnostic.all(in: error).first ?? Diagnostic("the server does not answer")
            return .unreachable(diagnostic)
        }
    }

    // MARK: The vault

    private func readVault(_ status: inout HomeStatus) {
        do {
            let sealed = home.vault
            guard try sealed.exists() else {
                try sealed.checkNotLost()
                status.contents = try contents(of: nil)
                return
            }
            let key = try sealed.status().key
            if key == .file || secrets.isStandardInput {
                let vault = try sealed.open { try VaultAccess(home: home, secrets: secrets).passphrase() }
                status.vault = .open(by: key)
                status.contents = try contents(of: vault)
            } else {
                status.vault = closed(status.server)
                guard let server = VaultServer(of: home),
                    let contents = try Self.contents(of: ServerPerformer(server: server))
                else { return }
                status.vault = .open(by: key)
                status.contents = contents
            }
        } catch let error as VaultError {
            status.vault = .faulty(Diagnostic(error.detail, hint: error.hint))
        } catch {
            status.faults += Diagnostic.all(in: error)
        }
    }

    private func closed(_ server: HomeStatus.Server) -> HomeStatus.Vault {
        guard case .running(let reply) = server else { return .closed(inServer: false) }
        return reply.isLocked ? .locked : .closed(inServer: true)
    }

    private func contents(of vault: OpenVault?) throws -> HomeStatus.Contents? {
        let now = now
        let operations = VaultOperations(home: home, vault: vault, now: { now })
        var contents = try Self.contents(of: OwnPerformer(operations: operations))
        contents?.wipes = (vault?.contents.wipes ?? [:]).keys.sorted()
        return contents
    }

    /// Nil if the server does not perform one of the operations, because it has locked the vault meanwhile or is of
    /// another version.
    private static func contents(of performer: some OperationPerformer) throws -> HomeStatus.Contents? {
        do {
            var contents = HomeStatus.Contents()
            contents.names = try performer.perform(ListNames())
            contents.credentials = try performer.perform(ListCredentials())
            contents.identities = try performer.perform(ListIdentities())
            contents.renewals = try performer.perform(ListRenewalStates())
            contents.signIns = try performer.perform(ListSignIns())
            contents.profiles = try performer.perform(ListProfiles()).filter { $0.owner != nil }
            return contents
        } catch is ServerPerformer.Declined {
            return nil
        }
    }

    /// Performs operations on a vault that this process has opened. Completes no interrupted wipe, which would need
    /// the provider.
    private struct OwnPerformer: OperationPerformer {
        let operations: VaultOperations

        func perform<Operation: VaultOperation>(_ operation: Operation, secret: Secret?) throws -> Operation.Result {
            try operations.perform(operation, secret: secret)
        }
    }

    /// Performs operations in the running server.
    private struct ServerPerformer: OperationPerformer {
        struct Declined: Error {}

        let server: VaultServer

        func perform<Operation: VaultOperation>(_ operation: Operation, secret: Secret?) throws -> Operation.Result {
            guard server.offers(Operation.self), let result = try server.perform(operation, secret: secret) else {
                throw Declined()
            }
            return result
        }
    }

    // MARK: The list

    private func sites(_ contents: HomeStatus.Contents?) -> HomeStatus.Sites {
        do {
            let list = try home.sites()
            let names = contents?.names
            let remarks =
                list.remarks(credentials: names?.credentials, identities: names?.identities)
                + list.scriptRemarks(isScript: Home.isScript)
            return .listed(list.rules, remarks: home.ignoredSiteFiles + remarks.map { Diagnostic($0) })
        } catch {
            return .faulty(Diagnostic.all(in: error))
        }
    }
}
