// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignLoopback
import CountersignSitePolicy
import Glibc
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Accepts clients, looks up the user of each in the kernel, and gives each a ``ClientConnection``.
///
/// A client connection and the origin connections that it uses are on the same event loop.
package final class ProxyListener: Sendable {
    private let services: ProxyServices
    private let group: MultiThreadedEventLoopGroup
    private let loops: [ObjectIdentifier: NIOLoopBound<LoopServices>]
    private let channels = NIOLockedValueBox<[any Channel]>([])
    private let sockets = NIOLockedValueBox<[ListeningSocket]>([])
    private let hasStopped = NIOLockedValueBox(false)
    private let refusals: NIOLockedValueBox<RefusedConnections>
    /// The connections that wait for a ``RefusalHandler``'s response.
    private let refusing = NIOLockedValueBox(0)
    private let refused: @Sendable (String) -> Void
    private let tick: RepeatedTask
    private let identification = ClientIdentification()

    /// `refused` is called with a line for the log when connections are refused.
    package init(
        services: ProxyServices, group: MultiThreadedEventLoopGroup, refused: @escaping @Sendable (String) -> Void
    ) async throws {
        self.services = services
        self.group = group
        self.refused = refused
        refusals = NIOLockedValueBox(
            RefusedConnections(servedUsers: [getuid()] + services.configuration.allowedUsers.sorted()))
        var loops: [ObjectIdentifier: NIOLoopBound<LoopServices>] = [:]
        for loop in group.makeIterator() {
            loops[ObjectIdentifier(loop)] = try await loop.submit {
                let bound = LoopServices(shared: services, loop: loop)
                bound.start()
                return NIOLoopBound(bound, eventLoop: loop)
            }.get()
        }
        self.loops = loops
        tick = group.next().scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { [refusals] _ in
            for line in refusals.withLockedValue({ $0.timePassed(now: MonotonicClock.seconds()) }) {
                refused(line)
            }
        }
    }

    /// Listens on every configured address. Returns the addresses as `host:port` or `unix:PATH`. With `isAccepting`
    /// false, clients wait in the sockets' queues until ``setAccepting(_:)``.
    package func listen(isAccepting: Bool = true) async throws -> [String] {
        var names: [String] = []
        for address in services.configuration.listeningAddresses {
            let socket = try ListeningSocket(address)
            sockets.withLockedValue { $0.append(socket) }
            let channel = try await bootstrap(for: socket)
                .serverChannelOption(.autoRead, value: isAccepting)
                .withBoundSocket(socket.copy()).get()
            channels.withLockedValue { $0.append(channel) }
            names.append(socket.name)
            // The same address is another one here.
            if let address = socket.address, !socket.isInSandbox {
                for loop in loops.values { await onLoop(loop) { $0.ownListeners.add(address) } }
            }
        }
        return names
    }

    /// Accepts clients, or leaves them waiting in the sockets' queues. Two processes never accept on one socket:
    /// SwiftNIO expects a client whenever its socket has become readable, and the other process could have taken it.
    package func setAccepting(_ isAccepting: Bool) async {
        for channel in channels.withLockedValue({ $0 }) {
            try? await channel.setOption(.autoRead, value: isAccepting).get()
        }
    }

    /// The listening sockets, for a process that replaces this one: `isOwn` as for inherited ones. This process keeps
    /// them until it stops.
    package var descriptors: [(descriptor: Int32, isOwn: Bool)] {
        sockets.withLockedValue { $0.map { ($0.descriptor, $0.address != nil || $0.ownPath != nil) } }
    }

    /// Another process has the sockets now: accepts no more clients, and serves the connected ones. ``stop()`` waits
    /// for them.
    package func handOver() async {
        await setAccepting(false)
        let channels = channels.withLockedValue { $0 }
        // A connection that was accepted before passes the loops of client and socket until it is registered. One whose
        // socket is closed before that is lost.
        for _ in 0..<4 {
            for loop in loops.values { await onLoop(loop) { _ in } }
            for channel in channels { try? await channel.eventLoop.submit {}.get() }
        }
        for loop in loops.values { await onLoop(loop) { $0.handOver() } }
        for channel in channels { try? await channel.close().get() }
        // The files belong to the other process.
        let sockets = sockets.withLockedValue { sockets in
            defer { sockets = [] }
            return sockets
        }
        for socket in sockets { socket.close() }
        self.channels.withLockedValue { $0 = [] }
        await waitUntilQuiet(seconds: services.configuration.handOverSeconds)
    }

    /// Ends the wait of ``handOver()``.
    package func hasten() { hasStopped.withLockedValue { $0 = true } }

    /// Returns when all connections are closed, the time is over, or ``hasten()`` was called.
    private func waitUntilQuiet(seconds: Int64, isHandedOver: Bool = true) async {
        let deadline = NIODeadline.now() + .seconds(seconds)
        while NIODeadline.now() < deadline, !isHandedOver || !hasStopped.withLockedValue({ $0 }) {
            var isQuiet = true
            for loop in loops.values where await onLoop(loop, { $0.isQuiet }) == false { isQuiet = false }
            if isQuiet { break }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    /// A connection of this process to its own proxy: one end of a socket pair whose other end the proxy has. There is
    /// no address that another process could use. The caller closes the descriptor. Nil if the system has no
    /// descriptors left.
    package func connect() -> Int32? {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            return nil
        }
        _ = ClientBootstrap(group: group)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { self.acceptUnix($0, socket: nil) }
            .withConnectedSocket(ends[0])
        return ends[1]
    }

    /// Stops accepting clients, waits for the exchanges in progress for the configured time, then closes everything.
    package func stop() async {
        for channel in channels.withLockedValue({ $0 }) { try? await channel.close().get() }
        for socket in sockets.withLockedValue({ $0 }) {
            socket.close()
            if let path = socket.ownPath { unlink(path) }
        }
        tick.cancel()
        for line in refusals.withLockedValue({ $0.ended() }) { refused(line) }
        for loop in loops.values { await onLoop(loop) { $0.drain() } }
        await waitUntilQuiet(seconds: services.configuration.drainSeconds, isHandedOver: false)
        for loop in loops.values { await onLoop(loop) { $0.stop() } }
        // Results that are delivered after the event loops have stopped would be lost.
        await services.leaves.finish()
        await services.lookups.finish()
    }

    /// The clients that are connected, with what can be found out about their programs now.
    package func clients() async -> [ConnectedClient] {
        var all: [ConnectedClient] = []
        for loop in loops.values { all += await onLoop(loop) { $0.clients } ?? [] }
        guard !all.isEmpty else { return [] }
        let found = all
        return
            (try? await services.lookups.run(on: group.next()) { [identification] in
                found.map { $0.identified(by: identification) }
            }.get()) ?? all
    }

    @discardableResult
    private func onLoop<Value: Sendable>(
        _ bound: NIOLoopBound<LoopServices>, _ body: @escaping @Sendable (LoopServices) -> Value
    ) async -> Value? {
        try? await bound.eventLoop.submit { body(bound.value) }.get()
    }

    private func bootstrap(for socket: ListeningSocket) -> ServerBootstrap {
        let isUnix = socket.address == nil
        return ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4096)
            // The default of four accepts per pass of the event loop starves new clients while others are busy.
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptPause { self.note(.notAccepted) })
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                if isUnix { return self.acceptUnix(channel, socket: socket.clientName) }
                _ = channel.setOption(.tcpOption(.tcp_nodelay), value: 1)
                if socket.isInSandbox { return self.acceptFromSandbox(channel) }
                return self.acceptTCP(channel)
            }
    }

    private func acceptTCP(_ channel: any Channel) -> EventLoopFuture<Void> {
        let loop = channel.eventLoop
        return loop.makeCompletedFuture {
            guard let client = channel.remoteAddress, let server = channel.localAddress else {
                throw Refused(reason: "a client closed its connection before it was accepted")
            }
            let owner = try self.owner(client, server)
            do {
                try self.checkUser(ClientProcess(uid: owner?.uid))
            } catch {
                guard let uid = owner?.uid, try self.explainRefusal(to: uid, channel) else { throw error }
                return nil
            }
            return (client, server, owner)
        }.flatMap { (accepted: (client: SocketAddress, server: SocketAddress, owner: SocketOwner.Owner?)?) in
            guard let (client, server, owner) = accepted else { return loop.makeSucceededVoidFuture() }
            let ancestor = owner == nil ? nil : self.services.configuration.admittedAncestor
            let needs = self.clientNeeds
            guard ancestor != nil || needs != nil else {
                return loop.makeCompletedFuture {
                    try self.addTCP(channel, (client, server), owner, isAdmitted: false, nil)
                }
            }
            return self.services.lookups.run(on: loop) { [identification = self.identification] in
                (
                    isAdmitted: ancestor.flatMap { ancestor in
                        owner.map { ProcessOfSocket.isHeld(byDescendantOf: ancestor, inode: $0.inode) }
                    } ?? false,
                    facts: needs.map { identification.facts(uid: owner?.uid, socketInode: owner?.inode, $0) }
                )
            }.flatMapThrowing { try self.addTCP(channel, (client, server), owner, isAdmitted: $0.isAdmitted, $0.facts) }
        }
    }

    /// A client in the sandbox of this process's command, so that it is this user's. Which of the command's processes
    /// it is stays unknown: the tables that this process can ask are those of another network namespace.
    private func acceptFromSandbox(_ channel: any Channel) -> EventLoopFuture<Void> {
        let loop = channel.eventLoop
        guard let needs = clientNeeds else {
            return loop.makeCompletedFuture { try self.addFromSandbox(channel, nil) }
        }
        return services.lookups.run(on: loop) { [identification = self.identification] in
            identification.facts(uid: getuid(), socketInode: nil, needs)
        }.flatMapThrowing { try self.addFromSandbox(channel, $0) }
    }

    private func addFromSandbox(_ channel: any Channel, _ facts: ClientFacts?) throws {
        try admit(add(channel, ClientProcess(uid: getuid()), addresses: nil), facts)
    }

    /// The client need not send the token: it has been recognised in another way.
    private func admit(_ connection: ClientConnection, _ facts: ClientFacts?) {
        connection.isAdmitted = true
        guard var facts else { return }
        if let name = services.configuration.clientTokens.first?.name { facts.token = .named(name) }
        connection.session.identified(as: facts)
    }

    private func addTCP(
        _ channel: any Channel, _ addresses: (client: SocketAddress, server: SocketAddress),
        _ owner: SocketOwner.Owner?, isAdmitted: Bool, _ facts: ClientFacts?
    ) throws {
        let connection = try add(
            channel, ClientProcess(uid: owner?.uid, socketInode: owner?.inode), addresses: addresses)
        if isAdmitted {
            admit(connection, facts)
        } else if let facts {
            connection.session.identified(as: facts)
        }
        guard services.journal.wantsProcess, facts?.pid == nil, let inode = owner?.inode else { return }
        let bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
        services.lookups.run(on: channel.eventLoop) { ProcessOfSocket.find(inode: inode) }
            .whenSuccess { bound.value.session.setProcessID($0) }
    }

    /// What must be found out about clients, according to the current list.
    private var clientNeeds: ClientNeeds? {
        guard services.configuration.answersSites else { return nil }
        let sites = services.policy.current.sites
        let needs = sites.clientNeeds
        return services.journal.recorder == nil && !sites.hasApprovals ? needs : ClientNeeds.program(and: needs)
    }

    private func acceptUnix(_ channel: any Channel, socket: String?) -> EventLoopFuture<Void> {
        guard let provider = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeFailedFuture(
                Refused(reason: "the socket does not report its peer's credentials"))
        }
        let credentials: EventLoopFuture<PeerCredentials> = provider.unsafeGetSocketOption(
            level: .socket, name: NIOBSDSocket.Option(rawValue: SO_PEERCRED))
        return credentials.flatMap { credentials in
            let process = ClientProcess(uid: credentials.uid, pid: credentials.pid)
            do {
                try self.checkUser(process)
                guard let needs = self.clientNeeds else {
                    _ = try self.add(channel, process, addresses: nil)
                    return channel.eventLoop.makeSucceededVoidFuture()
                }
                return self.facts(of: credentials, provider, on: channel.eventLoop, needs).flatMapThrowing { found in
                    var facts = found
                    facts.socket = socket.map { .named($0) } ?? ClientFacts.Name.none
                    try self.add(channel, process, addresses: nil).session.identified(as: facts)
                }
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
        }
    }

    /// What is to be known about the client of a Unix-domain socket.
    private func facts(
        of credentials: PeerCredentials, _ provider: any SocketOptionProvider, on loop: any EventLoop,
        _ needs: ClientNeeds
    ) -> EventLoopFuture<ClientFacts> {
        let ticks = ClientIdentification.ticks
        let descriptor: EventLoopFuture<Int32> = provider.unsafeGetSocketOption(
            level: .socket, name: NIOBSDSocket.Option(rawValue: ClientIdentification.processDescriptorOption))
        return descriptor.map { Optional($0) }.flatMapErrorThrowing { error in
            // The kernel does not have the option before Linux 6.5. With any other error, the process is gone.
            if (error as? IOError)?.errnoCode == ENOPROTOOPT { return nil }
            return -1
        }.flatMap { descriptor in
            self.services.lookups.run(on: loop) { [identification = self.identification] in
                defer { if let descriptor, descriptor >= 0 { close(descriptor) } }
                let peer = ClientIdentification.UnixPeer(
                    credentials: credentials, descriptor: descriptor, acceptedTicks: ticks)
                return identification.facts(of: peer, needs)
            }
        }
    }

    /// The connection is closed without a response.
    private struct Refused: Error {
        let reason: String
    }

    private func checkUser(_ process: ClientProcess) throws {
        guard services.configuration.requiresSameUser, process.uid != getuid() else { return }
        if let uid = process.uid, services.configuration.allowedUsers.contains(uid) { return }
        note(process.uid.map { .user($0) } ?? .unknownUser)
        throw Refused(reason: "the client's user")
    }

    /// Answers the connection of another user with a 403. Returns whether it does.
    private func explainRefusal(to uid: UInt32, _ channel: any Channel) throws -> Bool {
        let mayAnswer = refusing.withLockedValue { count in
            guard count < RefusalHandler.limit else { return false }
            count += 1
            return true
        }
        guard mayAnswer else { return false }
        let handler = RefusalHandler(uid: uid, servedUser: getuid()) { [refusing] in
            refusing.withLockedValue { $0 -= 1 }
        }
        try channel.pipeline.syncOperations.addHandler(handler)
        return true
    }

    private func owner(_ client: SocketAddress, _ server: SocketAddress) throws -> SocketOwner.Owner? {
        do throws(SocketOwner.NoDescriptors) {
            return try SocketOwner.find(client: client, server: server)
        } catch {
            guard services.configuration.requiresSameUser else { return nil }
            note(.noDescriptors)
            throw Refused(reason: "no descriptors")
        }
    }

    private func note(_ cause: RefusedConnections.Cause) {
        let line = refusals.withLockedValue { $0.note(cause, now: MonotonicClock.seconds()) }
        if let line { refused(line) }
    }

    private func add(
        _ channel: any Channel, _ process: ClientProcess, addresses: (client: SocketAddress, server: SocketAddress)?
    ) throws -> ClientConnection {
        guard let services = loops[ObjectIdentifier(channel.eventLoop)]?.value,
            !services.isDraining || services.isHandedOver
        else {
            throw Refused(reason: "stopping")
        }
        let connection = ClientConnection(services: services, process: process, addresses: addresses)
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
    }
}
