// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Dispatch
import Glibc
import Logging
import NIOCore
import NIOPosix
import CountersignProxy
import CountersignVault

/// A proxy that runs over a home: its doors, the policy behind them, and the look at the home's files once a second.
package final class ProxyRuntime: Sendable {
    /// Each door as `host:port` or `unix:PATH`, in the order of the configuration.
    package let addresses: [String]
    private let keeper: PolicyKeeper
    private let group: MultiThreadedEventLoopGroup
    private let listener: ProxyListener
    private let control: ControlSocket?
    private let looking: RepeatedTask
    private let suppliedCredentials: ReplacementCredentials?
    private let renewals: RenewalKeeper
    /// Reads the home: one at a time, and never on an event loop.
    private let queue: DispatchQueue

    /// Opens the doors. `hasControlSocket`: whether it takes orders at the home's socket; that it cannot is a warning.
    /// `serverTrustDelegate` is asked about listed origins that do not verify. `observer` is told what becomes of challenges,
    /// `refreshed` of each identity that was refreshed, or why it was not.
    package init(
        keeper: PolicyKeeper, configuration: ProxyConfiguration, accessLog: AccessLog?, threads: Int,
        hasControlSocket: Bool, breaker: BreakerBoard = BreakerBoard(),
        serverTrustDelegate: (any CountersignProxy.ServerTrustDelegate)? = nil,
        suppliedCredentials: ReplacementCredentials? = nil, observer: ChallengeObserver? = nil,
        refreshed: (@Sendable (String, (any Error)?) -> Void)? = nil, logger: Logger
    ) async throws {
        for case .unix(let path) in configuration.listeningAddresses {
            try HomeFile.makeFolder(HomeFile.folder(of: path), mode: 0o700)
            guard try LocalSocket.connect(to: path) == nil else {
                throw CountersignError(.environment, "another process listens on unix:\(path)")
            }
        }
        let renewals = RenewalKeeper(
            policyKeeper: keeper, now: { Int64(time(nil)) }, logger: logger, refreshed: refreshed)
        let services = ProxyServices(
            configuration: configuration, policy: keeper.policy, accessLog: accessLog, breaker: breaker,
            serverTrustDelegate: serverTrustDelegate, suppliedCredentials: suppliedCredentials,
            identityRefresher: IdentityRefresher(rejected: renewals.rejected, accepted: renewals.accepted),
            observer: observer,
            pseudonym: "countersign-\(Hex.encode(Randomness.bytes(4)))", wallClock: { Int64(time(nil)) })
        let group = MultiThreadedEventLoopGroup(numberOfThreads: threads)
        do {
            listener = try await ProxyListener(services: services, group: group) { logger.notice("\($0)") }
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
        do {
            addresses = try await listener.listen()
        } catch {
            await listener.stop()
            try? await group.shutdownGracefully()
            throw Self.explained(error, configuration.listeningAddresses)
        }
        self.keeper = keeper
        self.suppliedCredentials = suppliedCredentials
        self.group = group
        control = hasControlSocket ? Self.control(keeper, logger) : nil
        let queue = DispatchQueue(label: "countersign.home")
        self.queue = queue
        looking = group.next().scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            queue.async { keeper.refresh() }
        }
        self.renewals = renewals
        renewals.start()
    }

    /// A connection of this process to the proxy, through none of its doors; nil where the system has none to give.
    /// The caller closes it. Not to be called once ``stop()`` has been.
    package func connect() -> Int32? { listener.connect() }

    /// Reads the whole home again.
    package func reload() {
        queue.async { [keeper] in keeper.refresh(force: true) }
    }

    /// Lets what is in flight finish, for as long as the configuration says, and closes everything.
    package func stop() async {
        looking.cancel()
        renewals.stop()
        control?.stop()
        await suppliedCredentials?.stop()
        await listener.stop()
        try? await group.shutdownGracefully()
    }

    // MARK: The control socket

    private static func control(_ keeper: PolicyKeeper, _ logger: Logger) -> ControlSocket? {
        do {
            return try ControlSocket(home: keeper.home) { answer($0, keeper) }
        } catch {
            logger.warning("\(error.detail)", metadata: error.hint.map { ["hint": "\($0)"] })
            return nil
        }
    }

    private static func answer(_ request: ControlRequest, _ keeper: PolicyKeeper) -> ControlReply {
        var diagnostic: Diagnostic?
        switch request {
        case .status: break
        case .lock: keeper.lock()
        case .unlock(let passphrase):
            do {
                try keeper.unlock(passphrase: passphrase.map { Secret($0) })
            } catch {
                diagnostic = Diagnostic.all(in: error).first
            }
        }
        return ControlReply(isLocked: keeper.isLocked, error: diagnostic?.message, hint: diagnostic?.hint)
    }

    private static func explained(_ error: any Error, _ doors: [ProxyConfiguration.ListeningAddress]) -> CountersignError {
        let names = doors.map { door in
            switch door {
            case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            case .unix(let path): "unix:\(path)"
            }
        }
        let reason = Diagnostic.all(in: error).map(\.message).joined(separator: "; ")
        return CountersignError(
            .environment, "cannot listen on \(names.joined(separator: ", ")): \(reason)",
            hint: "choose another with --listen; port 0 picks a free one")
    }
}
