// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Glibc
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Resolves names for NIO's Happy Eyeballs connector (RFC 8305). `localhost` and every name below it are loopback
/// without a lookup (RFC 6761 §6.3). Other names are resolved by `getaddrinfo` on separate threads, because a name
/// server that does not answer blocks a thread for seconds.
///
/// One lookup covers both address families, since /etc/hosts and most name servers answer them together, and serves
/// all concurrent callers with the same name. The result is cached for ``lifetime``.
///
/// The owner of a name can give it an address of this machine, or change it to one between two lookups (DNS rebinding).
/// ``PublicResolver`` therefore removes such addresses from the very result that is used for the connection.
package final class OriginResolver: Resolver, Sendable {
    private struct Entry {
        let found: EventLoopFuture<Found>
        let expires: NIODeadline
    }

    private struct Found {
        let addresses: [SocketAddress]
        /// The machine's own files lead the name here.
        let leadsHereByFile: Bool
    }

    /// Looks a name up, on a thread that may block. Throws ``UpstreamError``.
    package typealias LookUp = @Sendable (_ host: String, _ port: Int) throws -> [SocketAddress]

    private static let lifetime = TimeAmount.seconds(30)
    private static let entryLimit = 1024
    private static let threads: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 8)
        pool.start()
        return pool
    }()

    private let loop: any EventLoop
    private let lookUp: LookUp
    private let hostsFile: HostsFile
    private let entries = NIOLockedValueBox<[String: Entry]>([:])

    package convenience init(loop: any EventLoop) {
        self.init(loop: loop, hostsFile: .system, lookUp: Self.getAddresses)
    }

    init(loop: any EventLoop, hostsFile: HostsFile, lookUp: @escaping LookUp) {
        self.loop = loop
        self.hostsFile = hostsFile
        self.lookUp = lookUp
    }

    package func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        addresses(of: host, port: port).map { $0.filter { $0.protocol == .inet } }
    }

    package func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        addresses(of: host, port: port).map { $0.filter { $0.protocol == .inet6 } }
    }

    package func cancelQueries() {}

    /// The first IPv4 address as text, else the first address; nil without any. For a parent that connects to one
    /// address only, and may have no IPv6. `mayBeLocal` is as in ``ConnectionTerms``.
    func firstAddress(of host: String, port: Int, mayBeLocal: Bool) -> EventLoopFuture<String?> {
        let found = mayBeLocal ? addresses(of: host, port: port) : publicAddresses(of: host, port: port)
        return found.map { ($0.first { $0.protocol == .inet } ?? $0.first)?.ipAddress }
    }

    private func addresses(of host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        find(host, port: port).map(\.addresses)
    }

    /// Without addresses of this machine, unless the host is one itself, or the machine's own files give it to the
    /// name. Fails if only such addresses would remain.
    fileprivate func publicAddresses(of host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        guard !HostText.isLoopbackName(host), IPAddress(host) == nil else { return addresses(of: host, port: port) }
        return find(host, port: port).flatMapThrowing { found in
            guard !found.leadsHereByFile else { return found.addresses }
            let permitted = found.addresses.filter { $0.localAddress == nil }
            guard permitted.isEmpty, let refused = found.addresses.first?.localAddress else { return permitted }
            throw UpstreamError(
                .localAddress,
                "\(host) has the address \(refused), which leads to this machine or its link, and the site is not "
                    + "listed; to permit such names, add --allow-local to `countersign serve` or `exec`")
        }
    }

    private func find(_ host: String, port: Int) -> EventLoopFuture<Found> {
        if HostText.isLoopbackName(host) {
            return loop.makeCompletedFuture {
                let addresses = try ["::1", "127.0.0.1"].map { try SocketAddress(ipAddress: $0, port: port) }
                return Found(addresses: addresses, leadsHereByFile: false)
            }
        }
        let name = "\(host):\(port)"
        if let cached = entries.withLockedValue({ $0[name] }), cached.expires > .now() { return cached.found }
        let found = Self.threads.runIfActive(eventLoop: loop) { [lookUp, hostsFile] in
            let addresses = try lookUp(host, port)
            let isLocal = addresses.contains { $0.localAddress != nil }
            return Found(addresses: addresses, leadsHereByFile: isLocal && hostsFile.leadsHere(host))
        }
        entries.withLockedValue { entries in
            if entries.count >= Self.entryLimit { entries.removeAll() }
            entries[name] = Entry(found: found, expires: .now() + Self.lifetime)
        }
        // Failures are not cached.
        found.whenFailure { [weak self] _ in self?.entries.withLockedValue { $0[name] = nil } }
        return found
    }

    @Sendable private static func getAddresses(_ host: String, port: Int) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            throw UpstreamError(.nameNotFound, "\(host): \(String(cString: gai_strerror(status)).lowercased())")
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            if let address = entry.ai_addr {
                if entry.ai_family == AF_INET {
                    addresses.append(
                        address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee) })
                } else if entry.ai_family == AF_INET6 {
                    addresses.append(
                        address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee) })
                }
            }
            next = entry.ai_next
        }
        return addresses
    }
}

/// The same for a name that a stranger may have chosen: addresses of this machine are omitted.
final class PublicResolver: Resolver, Sendable {
    private let base: OriginResolver

    init(_ base: OriginResolver) { self.base = base }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        base.publicAddresses(of: host, port: port).map { $0.filter { $0.protocol == .inet } }
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        base.publicAddresses(of: host, port: port).map { $0.filter { $0.protocol == .inet6 } }
    }

    func cancelQueries() {}
}

extension SocketAddress {
    /// The address, if it leads to this machine or its link.
    fileprivate var localAddress: IPAddress? {
        guard let address = ipAddress.flatMap({ IPAddress($0) }), address.isLocal else { return nil }
        return address
    }
}
