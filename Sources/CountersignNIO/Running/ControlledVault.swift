// SPDX-License-Identifier: Apache-2.0

package import Countersign
import CountersignCryptography
import CountersignAnswering
import CountersignHome
import CountersignParents
import CountersignProxy
import CountersignReporting
import CountersignVault
import FoundationEssentials
import Glibc
import Logging
import NIOPosix

/// Answers a question about the policy that a keeper has. `isAbandoned` is as in `OperationDialogue`.
package typealias PolicyReporter =
    @Sendable (
        PolicyQuestion, PolicyKeeper, _ isAbandoned: (@Sendable () -> Bool)?
    ) throws -> PolicyReport

/// The vault of a running server, as commands on the control socket reach it.
struct ControlledVault: Sendable {
    let keeper: PolicyKeeper
    /// Nil if commands have to open the vault themselves.
    let reporter: PolicyReporter?
    /// The server's event loops, which outlive a proxy for one command. After that has ended, the KDC or a name server
    /// may still answer it.
    let group: MultiThreadedEventLoopGroup
    /// The next hops of the server's requests; nil if every connection is direct.
    let routes: (any RouteFinding)?
    /// That of the program, if it has one.
    let version: String?
    let logger: Logger
    /// When the server started, in seconds since 1970.
    let since = Int64(time(nil))

    /// Answers everything but operations.
    func answer(_ request: ControlRequest, _ secret: Secret?) -> ControlReply {
        var diagnostic: Diagnostic?
        var isWrongPassphrase: Bool?
        var route: [RouteHop]?
        switch request {
        case .status, .perform, .pageEnded, .page, .events, .questions, .clients, .approve: break
        case .lock: keeper.lock()
        case .route(let url):
            do {
                route = try Blocking.run { [routes] in try await RouteHop.all(to: url, routes) }
            } catch {
                diagnostic = Diagnostic.all(in: error).first
            }
        case .restart:
            do throws(CountersignError) {
                try keeper.restart()
            } catch {
                diagnostic = Diagnostic(error.detail, hint: error.hint)
            }
        case .unlock:
            do {
                try keeper.unlock(passphrase: secret)
            } catch {
                diagnostic = Diagnostic.all(in: error).first
                if (error as? VaultError)?.code == .wrongPassphrase { isWrongPassphrase = true }
            }
        }
        var reply = ControlReply(isLocked: keeper.isLocked, error: diagnostic?.message, hint: diagnostic?.hint)
        reply.isWrongPassphrase = isWrongPassphrase
        reply.route = route
        guard case .status = request else { return reply }
        reply.knowsRoutes = true
        reply.since = since
        reply.version = version
        if reporter != nil {
            reply.operations = OperationTable.names
            reply.kerberos = .ofThisProcess
        }
        return reply
    }

    /// Performs an operation, and returns an `OperationReply` with its result. When it returns, the changes are in
    /// effect.
    func perform(
        _ operation: some VaultOperation, _ secret: Secret?, _ dialogue: OperationDialogue
    ) -> any Encodable & Sendable {
        reply(to: operation, secret, dialogue)
    }

    private func reply<Operation: VaultOperation>(
        to operation: Operation, _ secret: Secret?, _ dialogue: OperationDialogue
    ) -> OperationReply<Operation.Result> {
        guard let reporter else { return .unavailable(reason: "this server performs no operations for commands") }
        // The files of the home may have changed since they were last read.
        keeper.refresh()
        guard let vault = keeper.vault else { return .unavailable(reason: HomeSnapshot.vaultIsLocked) }
        do {
            try vault.reload()
        } catch  where error.code == .passphraseNeeded {
            return .unavailable(reason: error.detail)
        } catch {
            return .failed(Diagnostic.all(in: error))
        }
        let policy = ServedPolicy(
            report: { [keeper] in try reporter($0, keeper, dialogue.isAbandoned) },
            runProxy: { try runProxy(spoolBytes: $0, dialogue) })
        let operations = VaultOperations(
            home: keeper.home, vault: vault, policy: policy, renewals: keeper.signInRenewals, now: { Int64(time(nil)) })
        do {
            // An enrolment may take a day, and must not outlive `vault lock` with the vault's content.
            let limited = OperationDialogue(
                process: dialogue.process, report: dialogue.report,
                isAbandoned: { [keeper] in dialogue.isAbandoned?() == true || keeper.isLocked },
                pageEnd: dialogue.pageEnd, opened: dialogue.opened, waitForEnd: dialogue.waitForEnd)
            let result = try operations.perform(operation, secret: secret, limited)
            keeper.refresh()
            if let change = operation.change(result) {
                logger.notice("process \(dialogue.process ?? 0) has \(change)")
            }
            return .finished(result)
        } catch let error as OperationUnavailable {
            return .unavailable(reason: error.reason)
        } catch  where keeper.isLocked {
            return .failed(Diagnostic.all(in: CountersignError(.refused, "the vault was locked meanwhile")))
        } catch {
            return .failed(Diagnostic.all(in: error))
        }
    }

    /// Runs a proxy with this server's policy until the command has ended.
    private func runProxy(spoolBytes: Int, _ dialogue: OperationDialogue) throws -> UnansweredReport {
        guard Self.sharesNetwork(with: dialogue.process) else {
            throw OperationUnavailable(reason: "the command is in another network or process namespace")
        }
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.clientTokens = [ClientToken(token)]
        configuration.admittedAncestor = dialogue.process
        configuration.drainSeconds = 0
        configuration.spoolLimitBytes = max(0, spoolBytes)
        let unanswered = UnansweredSites(policy: keeper.policy)
        let runtime = try Blocking.run { [configuration, keeper, group, logger] in
            try await ProxyRuntime(
                keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
                isTemporary: true, group: group, observer: unanswered.observer, routes: routes, logger: logger)
        }
        dialogue.opened(runtime.addresses.first ?? "", token.utf8Text ?? "")
        dialogue.waitForEnd()
        try Blocking.run { await runtime.stop() }
        return UnansweredReport(unanswered, isListEmpty: keeper.policy.current.sites.isReallyEmpty)
    }

    /// Whether a loopback address is the same one for `process` as for this process, and its descendants can be
    /// identified.
    private static func sharesNetwork(with process: Int32?) -> Bool {
        guard let process, process > 0,
            let theirs = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/ns/net"),
            let ours = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/net")
        else { return false }
        return theirs == ours
    }
}
