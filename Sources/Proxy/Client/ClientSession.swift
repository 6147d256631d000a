// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignLoopback
import CountersignSitePolicy
import CountersignUpstream
import NIOCore

/// The state of one client connection: the process at the other end, the origin it stands in for, and the origin
/// connections that belong to this client alone. All exchanges of the connection share it.
///
/// It has no reference to the connection. Work that may outlive the client, such as a connection attempt, keeps the
/// session and checks ``isConnected``. A weak reference to the connection would do the same, but Swift counts every
/// reference to an object that was once referred to weakly in a side table, at several times the cost.
final class ClientSession {
    enum Role {
        /// The client sends its requests to the proxy.
        case proxy
        /// The client sends its requests inside a CONNECT to this site.
        case inside(ConnectSite)
    }

    /// The site of a CONNECT whose requests the proxy reads. An object, because most connections have none and idle
    /// ones should stay small.
    final class ConnectSite {
        /// With https, the proxy intercepts the client's TLS. With http, the requests are sent without TLS.
        let origin: Origin
        /// The SHA-256 of the untrusted leaf that the client accepted by continuing after it was shown the problem; nil
        /// if the origin is trusted.
        let pin: [UInt8]?
        /// The client's Proxy-Authorization in the CONNECT, for a parent that the proxy does not answer, if requests
        /// go to parents without a CONNECT.
        let parentAuthorization: String?

        init(origin: Origin, pin: [UInt8]? = nil, parentAuthorization: String? = nil) {
            self.origin = origin
            self.pin = pin
            self.parentAuthorization = parentAuthorization
        }

        var isIntercepted: Bool { origin.scheme == .https }
    }

    private(set) var process: ClientProcess
    var role = Role.proxy
    /// False before the connection is part of a channel and after the client has gone.
    private(set) var isConnected = false
    /// Nil if the list did not distinguish clients when this one connected.
    private(set) var client: IdentifiedClient?
    /// The client has sent the token that the proxy requires.
    var hasToken = false
    /// The untrusted origins that the delegate accepted for this client.
    @exclusivity(unchecked) var consents: [Origin: DelegateConsent] = [:]

    private let addresses: (client: SocketAddress, server: SocketAddress)?
    private var isConfirmedUser = false
    // Each request looks into these collections, which are nearly always empty. Without `unchecked` the exclusivity
    // check alone would cost 80 instructions each time.
    @exclusivity(unchecked) private var bound = BoundConnections()
    /// A connection of this client has been authenticated for all its requests.
    @exclusivity(unchecked) private(set) var hasPersistentConnections = false
    @exclusivity(unchecked) private var authenticatedOrigins: Set<Origin> = []

    /// `addresses` are those of a TCP connection whose owner must be confirmed before a credential is used.
    init(process: ClientProcess, addresses: (client: SocketAddress, server: SocketAddress)?) {
        self.process = process
        self.addresses = addresses
    }

    /// The site of the CONNECT that the requests are sent in; nil for those to the proxy's own port.
    var connectSite: ConnectSite? { if case .inside(let site) = role { site } else { nil } }

    /// Of the proxy's end of a TCP connection.
    var serverPort: Int? { addresses?.server.port }

    func connected() { isConnected = true }

    /// The client has gone; so do the connections that belong to it.
    func disconnected() {
        isConnected = false
        bound.closeAll()
    }

    // MARK: The process

    func setProcessID(_ pid: Int32?) { process.pid = pid }

    func identified(as facts: ClientFacts) {
        client = IdentifiedClient(facts)
        if let pid = facts.pid { process.pid = pid }
    }

    /// The client has sent `token`. Returns whether its next request may be treated differently from the last one.
    func hasSent(_ token: ClientToken) -> Bool {
        hasToken = true
        return client?.hasSent(token) ?? false
    }

    /// Whether the client is still there and its end of the connection still belongs to the same user. The kernel is
    /// asked before the first credential is used.
    func isStillSameUser() -> Bool {
        guard isConnected else { return false }
        guard !isConfirmedUser, let addresses else { return true }
        let owner = try? SocketOwner.find(client: addresses.client, server: addresses.server)
        isConfirmedUser = owner?.uid == process.uid
        return isConfirmedUser
    }

    // MARK: Authentication by the client itself

    /// The client has sent NTLM or Negotiate credentials of its own to `origin`.
    func authenticates(itselfTo origin: Origin) {
        authenticatedOrigins.insert(origin)
    }

    func hasAuthenticated(itselfTo origin: Origin) -> Bool {
        !authenticatedOrigins.isEmpty && authenticatedOrigins.contains(origin)
    }

    // MARK: Connections of this client alone

    /// A lease of a connection for `slot`. `withholdsIdentity`: only of one on which no client identity was shown.
    func boundConnection(
        for slot: UpstreamPool.Slot, withholdsIdentity: Bool = false, needsHTTP1: Bool = false
    ) -> (any OriginLease)? {
        guard !bound.isEmpty else { return nil }
        return bound.lease(for: slot.key) {
            (!withholdsIdentity || !$0.hasShownIdentity) && (!needsHTTP1 || !($0 is HTTP2OriginConnection))
        }
    }

    /// Whether a connection for `key` has already been authenticated for this client.
    func hasAuthenticatedConnection(for key: UpstreamKey) -> Bool {
        bound.connection(for: key).map { $0.isReusable && $0.isAuthenticated } ?? false
    }

    /// Whether the origin has said that requests on the connection for `key` need no further answer.
    func hasPersistentConnection(for key: UpstreamKey) -> Bool {
        guard hasPersistentConnections else { return false }
        return bound.connection(for: key).map { $0.isReusable && $0.isPersistentlyAuthenticated } ?? false
    }

    /// Keeps the connection of `lease` for this client's next request.
    func bind(_ lease: any OriginLease, for key: UpstreamKey) {
        guard isConnected else { return lease.close() }
        if let connection = lease.keep() { keep(connection, for: key) }
    }

    /// Keeps `connection`, on which exchanges may be in progress, for this client's requests.
    func keep(_ connection: any KeptConnection, for key: UpstreamKey) {
        if connection.isPersistentlyAuthenticated { hasPersistentConnections = true }
        bound.keep(connection, for: key)
    }

    func closeBound() { bound.closeAll() }

    /// Closes the kept connections with other settings, which no request will use again.
    func keepOnly(settings: UInt64) { bound.keepOnly(settings: settings) }
}

/// The origin connections of one client: those that were authenticated for it, the oldest first. There are several for
/// one key if the client has several exchanges at a time, as in HTTP/2.
struct BoundConnections {
    private static let capacity = 16
    /// Searched in order: nearly always there is one, and hashing its key costs more than comparing a few.
    private var entries: [(key: UpstreamKey, connection: any KeptConnection)] = []

    var isEmpty: Bool { entries.isEmpty }

    /// The oldest connection kept for `key`. It stays.
    func connection(for key: UpstreamKey) -> (any KeptConnection)? {
        entries.first { $0.key == key }?.connection
    }

    /// A lease of the oldest connection kept for `key` that `isWanted` accepts. Closes those that have ended.
    mutating func lease(
        for key: UpstreamKey, where isWanted: (any KeptConnection) -> Bool = { _ in true }
    ) -> (any OriginLease)? {
        var index = 0
        while index < entries.count {
            let (kept, connection) = entries[index]
            guard kept == key, isWanted(connection) else {
                index += 1
                continue
            }
            guard connection.isReusable else {
                entries.remove(at: index).connection.close()
                continue
            }
            if let (lease, stays) = connection.lease() {
                if !stays { entries.remove(at: index) }
                return lease
            }
            index += 1
        }
        return nil
    }

    /// Keeps `connection` for `key`. Closes the oldest one if there are too many.
    mutating func keep(_ connection: any KeptConnection, for key: UpstreamKey) {
        if entries.contains(where: { $0.connection === connection }) { return }
        entries.append((key, connection))
        if entries.count > Self.capacity { entries.removeFirst().connection.close() }
    }

    /// Closes the connections with other settings.
    mutating func keepOnly(settings: UInt64) {
        let closed = entries.filter { $0.key.settings != settings }
        guard !closed.isEmpty else { return }
        entries.removeAll { $0.key.settings != settings }
        for entry in closed { entry.connection.close() }
    }

    mutating func closeAll() {
        let all = entries
        entries = []
        for entry in all { entry.connection.close() }
    }
}
