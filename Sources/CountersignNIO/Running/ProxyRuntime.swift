// SPDX-License-Identifier: Apache-2.0

package import Countersign
package import CountersignAddresses
import CountersignBroker
package import CountersignCertificates
import CountersignCryptography
import CountersignEvents
import CountersignHome
import CountersignPage
package import CountersignParents
import Dispatch
import Glibc
package import Logging
import NIOConcurrencyHelpers
import NIOCore
package import NIOPosix
package import CountersignAnswering
package import CountersignProxy
import CountersignUpstream
import CountersignVault
import Synchronization

/// A running proxy for a home: its listening sockets, the policy, and the timer that reads the home's files again.
package final class ProxyRuntime: Sendable {
    /// The listening addresses as `host:port` or `unix:PATH`, in the order of the configuration.
    package let addresses: [String]
    private let keeper: PolicyKeeper
    private let group: MultiThreadedEventLoopGroup
    private let ownsGroup: Bool
    private let ownPorts: Set<UInt16>
    private let isTemporary: Bool
    private let listener: ProxyListener
    private let control: ControlSocket?
    private let refreshTask: RepeatedTask
    /// Makes changes to the home take effect at once; ``refreshTask`` finds those that it misses.
    private let watcher: HomeWatcher
    /// The CA that issues the certificates of the runtime's own interceptions; nil for the home's.
    package let ownAuthority: InterceptionAuthority?
    let delegateCredentials: ReplacementCredentials?
    private let rejectedIdentities: RejectedIdentities
    private let signInRenewals: SignInRenewals
    private let brokerCookies: BrokerCookieKeeper
    /// No other runtime uses the renewals, or outlives this one.
    private let ownsSignInRenewals: Bool
    private let scopeRequests: ScopeRequests?
    /// The runtime's own keeper of certificates; nil if the caller has one.
    private let ownRenewals: RenewalKeeper?
    private let hasHandedOver = Atomic(false)
    /// Reads the home serially, off the event loops.
    private let queue: DispatchQueue

    /// Starts listening. With `hasControlSocket`, accepts commands on the home's control socket, and logs a warning if
    /// that is not possible; `inheritedControlSocket` is that of the process that this one replaces. With `isAccepting`
    /// false, clients wait until ``setAccepting(_:)``. With `reporter`, commands include operations on the vault.
    /// `serverTrustDelegate` decides about listed origins that cannot be verified. `observer` is notified of
    /// challenges. `clientTokenFile` is the path that the control socket reports. `renewals` is the keeper of the
    /// home's certificates if the caller runs one; otherwise the runtime runs its own. `isTemporary`: another runtime
    /// uses the same keeper and outlives this one. `scopeRequests` asks the person for scopes that an access token
    /// lacks, or `scopeAsker` does. `group` has event loops that outlive it; otherwise the runtime has `threads` of its
    /// own. With `observed`, it also intercepts these origins, with a CA of its own whose root is not stored, and
    /// reports the responses to a window's pages. `version` is the program's, which the control socket reports.
    package init(
        keeper: PolicyKeeper, configuration: ProxyConfiguration, accessLog: AccessLog?, threads: Int,
        hasControlSocket: Bool, inheritedControlSocket: Int32? = nil, isAccepting: Bool = true,
        isTemporary: Bool = false, group shared: MultiThreadedEventLoopGroup? = nil,
        reporter: PolicyReporter? = nil, clientTokenFile: String? = nil,
        serverTrustDelegate: (any CountersignProxy.ServerTrustDecider)? = nil,
        delegateCredentials: ReplacementCredentials? = nil, observer: ChallengeObserver? = nil,
        renewals: RenewalKeeper? = nil, scopeRequests: ScopeRequests? = nil, scopeAsker: ScopeAsker? = nil,
        observed: (origins: [Origin], responses: ResponseObserver)? = nil, routes: (any RouteFinding)? = nil,
        version: String? = nil, watchers: Watchers = Watchers(), logger: Logger
    ) async throws {
        self.scopeRequests = scopeRequests
        keeper.home.removeAbandonedFiles()
        for case .unix(let path) in configuration.listeningAddresses {
            try HomeFile(path: path).requireFolder()
            guard try LocalSocket.connect(to: path) == nil else {
                throw CountersignError(.environment, "another process listens on unix:\(path)")
            }
        }
        let ownRenewals: RenewalKeeper?
        let rejectedIdentities: RejectedIdentities
        if let renewals {
            ownRenewals = nil
            rejectedIdentities = RejectedIdentities(renewals: renewals)
        } else {
            let renewals = RenewalKeeper(policyKeeper: keeper, now: { Int64(time(nil)) }, logger: logger)
            ownRenewals = renewals
            rejectedIdentities = RejectedIdentities(renewals: renewals)
        }
        var configuration = configuration
        if configuration.spoolFolders.isEmpty { configuration.spoolFolders = [keeper.home.path] }
        let sharedRenewals = isTemporary ? keeper.signInRenewals : nil
        let signInRenewals =
            sharedRenewals ?? SignInRenewals(keeper: keeper, logger: logger) { Int64(time(nil)) }
        self.signInRenewals = signInRenewals
        ownsSignInRenewals = sharedRenewals == nil
        if ownsSignInRenewals { signInRenewals.completeLists() }
        let brokerCookies = BrokerCookieKeeper(
            broker: Broker(SessionBus(environment: keeper.environment), random: Randomness.bytes(16)),
            mayUse: { [policy = keeper.policy] in policy.current.mayUse($0) }
        ) { sentence, hint in
            logger.notice("\(sentence)", metadata: hint.map { ["hint": "\($0)"] })
        }
        self.brokerCookies = brokerCookies
        if hasControlSocket, watchers.page != nil, let host = try? Origin(scheme: .http, authority: PageServer.ownHost)
        {
            configuration.ownSite = OwnSite(origin: host, socketPath: keeper.home.controlSocket.path)
        }
        let policy = try ObservingPolicy(keeper.policy, observed?.origins, now: Int64(time(nil)))
        ownAuthority = policy.authority
        let services = ProxyServices(
            configuration: configuration, policy: policy.policy, accessLog: accessLog, events: keeper.events,
            meter: watchers.meter, recorder: watchers.recorder, inventory: watchers.inventory,
            approvals: keeper.approvals, breaker: keeper.breaker,
            sessions: keeper.sessions,
            serverTrustDecider: serverTrustDelegate, delegateCredentials: delegateCredentials,
            identityRefresher: IdentityRefresher(
                rejected: rejectedIdentities.identityRejected, accepted: rejectedIdentities.identityAccepted),
            tokenRenewer: signInRenewals.renewer, scopeAsker: scopeRequests?.asker ?? scopeAsker,
            brokerCookies: brokerCookies.cookies,
            observer: .telling(keeper.events, under: keeper.policy, and: observer), routes: routes,
            responses: observed?.responses,
            untrusted: { sentence, hint in
                logger.notice("\(sentence)", metadata: hint.map { ["hint": "\($0)"] })
            },
            ownFault: { logger.error("\($0)") },
            pseudonym: "countersign-\(Hex.encode(Randomness.bytes(4)))", wallClock: { Int64(time(nil)) })
        let group = shared ?? MultiThreadedEventLoopGroup(numberOfThreads: threads)
        do {
            listener = try await ProxyListener(services: services, group: group) { logger.notice("\($0)") }
        } catch {
            if shared == nil { try? await group.shutdownGracefully() }
            throw error
        }
        do {
            addresses = try await listener.listen(isAccepting: isAccepting)
        } catch {
            await listener.stop()
            if shared == nil { try? await group.shutdownGracefully() }
            throw Self.explained(error, configuration.listeningAddresses, keeper.home)
        }
        let ports = addresses.compactMap { $0.split(separator: ":").last.flatMap { UInt16($0) } }
        ownPorts = Set(ports)
        self.isTemporary = isTemporary
        keeper.revocation.addOwnPorts(ownPorts)
        self.keeper = keeper
        self.delegateCredentials = delegateCredentials
        self.rejectedIdentities = rejectedIdentities
        self.ownRenewals = ownRenewals
        self.group = group
        ownsGroup = shared == nil
        let vault = ControlledVault(
            keeper: keeper, reporter: reporter, group: group, routes: routes, version: version, logger: logger)
        control =
            hasControlSocket
            ? Self.control(vault, listener, addresses, clientTokenFile, inheritedControlSocket, watchers) : nil
        let queue = DispatchQueue(label: "countersign.home")
        self.queue = queue
        if !isTemporary { keeper.signInRenewals = signInRenewals }
        refreshTask = group.next().scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            queue.async {
                // The other runtime does this, too.
                if !isTemporary {
                    signInRenewals.completeWipes()
                    signInRenewals.completeLists()
                }
                keeper.refresh()
                policy.refresh()
                brokerCookies.forget()
                if !isTemporary { signInRenewals.renewAhead() }
            }
        }
        watcher = HomeWatcher(keeper.home, on: queue) {
            keeper.refresh()
            policy.refresh()
        }
        ownRenewals?.start()
    }

    /// Connects this process to the proxy through a socket pair rather than a listening address. Returns nil if the
    /// system has no descriptors left. The caller closes the descriptor. Must not be called after ``stop()``.
    package func connect() -> Int32? { listener.connect() }

    /// Reads the whole home again.
    package func reload() {
        queue.async { [keeper] in keeper.refresh(force: true) }
    }

    // MARK: Another process

    /// The listening sockets, and whether this process removes their files at the end.
    package var listeningSockets: [(descriptor: Int32, isOwn: Bool)] { listener.descriptors }

    /// The listening control socket; nil without one.
    package var controlSocket: Int32? { control?.descriptor }

    /// Accepts clients, or leaves them waiting.
    package func setAccepting(_ isAccepting: Bool) async { await listener.setAccepting(isAccepting) }

    /// Another process has the sockets now, and does the background work of this one. Serves the clients that are
    /// connected, up to the configured limit or until ``hasten()``. ``stop()`` must follow.
    package func handOver() async {
        refreshTask.cancel()
        ownRenewals?.stop()
        signInRenewals.cancel()
        keeper.events.finish()
        await control?.stop(isHandedOver: true)
        hasHandedOver.store(true, ordering: .relaxed)
        await listener.handOver()
    }

    /// Ends the wait of ``handOver()``.
    package func hasten() { listener.hasten() }

    /// Waits for exchanges in progress, up to the configured limit, and closes everything.
    package func stop() async {
        refreshTask.cancel()
        ownRenewals?.stop()
        rejectedIdentities.cancel()
        brokerCookies.stop()
        if ownsSignInRenewals { signInRenewals.cancel() }
        scopeRequests?.cancel()
        if !isTemporary { keeper.events.finish() }
        if !hasHandedOver.load(ordering: .relaxed) { await control?.stop() }
        await delegateCredentials?.stop()
        await listener.stop()
        await scopeRequests?.stop()
        if ownsSignInRenewals { await signInRenewals.stop() }
        if keeper.signInRenewals === signInRenewals, !isTemporary { keeper.signInRenewals = nil }
        await withCheckedContinuation { continuation in
            queue.async { [keeper] in
                keeper.writeSessions(isLast: true)
                continuation.resume()
            }
        }
        keeper.revocation.removeOwnPorts(ownPorts)
        // Handshakes of the other runtime may be waiting, too.
        if !isTemporary { keeper.revocation.finishWaiting() }
        if ownsGroup { try? await group.shutdownGracefully() }
        await keeper.breaker.flush()
    }

    /// The policy of a runtime: the home's, or one that also intercepts the hosts of a sign-in's pages.
    private final class ObservingPolicy: Sendable {
        let policy: CurrentPolicy
        let authority: InterceptionAuthority?
        private let base: CurrentPolicy
        private let origins: [Origin]
        private let version: NIOLockedValueBox<Int>

        init(_ base: CurrentPolicy, _ origins: [Origin]?, now: Int64) throws {
            self.base = base
            self.origins = origins ?? []
            version = NIOLockedValueBox(base.version)
            guard let origins else {
                (policy, authority) = (base, nil)
                return
            }
            let current = base.current
            let sites = current.sites.observing(origins)
            let made = try InterceptionAuthority.create(permitting: InterceptionStore.hosts(of: sites), at: now)
            authority = made
            policy = CurrentPolicy(current.intercepting(sites, with: made))
        }

        /// Takes changes of the home over. Sites that were listed meanwhile are not intercepted: the CA does not permit
        /// them.
        func refresh() {
            guard let authority else { return }
            let version = base.version
            let isNew = self.version.withLockedValue { known in
                defer { known = version }
                return known != version
            }
            guard isNew else { return }
            policy.replace(with: base.current.intercepting(policy.current.sites, with: authority))
        }
    }

    // MARK: Control socket

    private static func control(
        _ vault: ControlledVault, _ listener: ProxyListener, _ addresses: [String], _ clientTokenFile: String?,
        _ inherited: Int32?,
        _ watchers: Watchers
    ) -> ControlSocket? {
        do {
            let service = ControlSocket.Service(
                answer: { request, secret in
                    var reply = vault.answer(request, secret)
                    reply.addresses = addresses
                    reply.clientTokenFile = clientTokenFile
                    reply.answer(request, watchers, addresses)
                    if case .clients = request {
                        reply.clients = ListedClient.all(try? Blocking.run { await listener.clients() })
                    }
                    return reply
                }, perform: { vault.perform($0, $1, $2) }, events: vault.keeper.events, page: watchers.page)
            return try ControlSocket(home: vault.keeper.home, inherited: inherited, service: service)
        } catch {
            vault.logger.warning("\(error.detail)", metadata: error.hint.map { ["hint": "\($0)"] })
            return nil
        }
    }

    private static func explained(
        _ error: any Error, _ addresses: [ProxyConfiguration.ListeningAddress], _ home: Home
    ) -> CountersignError {
        let names = addresses.map { address in
            switch address {
            case .tcp(let host, let port): HostText.joined(host, port)
            case .unix(let path): "unix:\(path)"
            case .inherited(let descriptor, _): "the inherited socket \(descriptor)"
            case .sandbox: "the socket of the sandbox"
            }
        }
        let attempt = "cannot listen on \(names.joined(separator: ", "))"
        if let server = try? ControlSocket.ask(.status, of: home),
            server.addresses?.contains(where: names.contains) == true
        {
            let pid = server.processIdentifier
            return CountersignError(
                .environment, "\(attempt): countersign serve (pid \(pid)) of this home is listening there",
                hint: "use that one, stop it with `kill \(pid)`, or choose another address with --listen")
        }
        let reason = Diagnostic.all(in: error).map(\.message).joined(separator: "; ")
        return CountersignError(
            .environment, "\(attempt): \(reason)",
            hint: "choose another address with --listen; port 0 selects a free one")
    }
}
