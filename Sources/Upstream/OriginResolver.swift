// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Glibc
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Resolves names for NIO's Happy Eyeballs connector (RFC 8305). `localhost` and every name below it are loopback
/// without a lookup (RFC 6761 §6.3). Other names are resolved by `getaddrinfo` on separate threads, because a name
/// server that does not answer blocks a thread for seconds.
///
/// One lookup covers both address families, since /etc/hosts and most name servers answer them together, and serves
/// everybody who asks for the same name meanwhile. The result is cached for ``lifetime``.
package final class OriginResolver: Resolver, Sendable {
    private struct Entry {
        let addresses: EventLoopFuture<[SocketAddress]>
        let expires: NIODeadline
    }

    private static let lifetime = TimeAmount.seconds(30)
    private static let entryLimit = 1024
    private static let threads: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 8)
        pool.start()
        return pool
    }()

    private let loop: any EventLoop
    private let entries = NIOLockedValueBox<[String: Entry]>([:])

    package init(loop: any EventLoop) {
        self.loop = loop
    }

    package func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        addresses(of: host, port: port).map { $0.filter { $0.protocol == .inet } }
    }

    package func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        addresses(of: host, port: port).map { $0.filter { $0.protocol == .inet6 } }
    }

    package func cancelQueries() {}

    /// The first IPv4 address as text, else the first address; nil if there is none. For a parent that connects to
    /// one address only, and may have no IPv6.
    func firstAddress(of host: String, port: Int) -> EventLoopFuture<String?> {
        addresses(of: host, port: port).map { ($0.first { $0.protocol == .inet } ?? $0.first)?.ipAddress }
    }

    private func addresses(of host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        if HostText.isLoopbackName(host) {
            return loop.makeCompletedFuture {
                [
                    try SocketAddress(ipAddress: "::1", port: port),
                    try SocketAddress(ipAddress: "127.0.0.1", port: port),
                ]
            }
        }
        let name = "\(host):\(port)"
        if let cached = entries.withLockedValue({ $0[name] }), cached.expires > .now() { return cached.addresses }
        let found = Self.threads.runIfActive(eventLoop: loop) { try Self.getAddresses(host, port: port) }
        entries.withLockedValue { entries in
            if entries.count >= Self.entryLimit { entries.removeAll() }
            entries[name] = Entry(addresses: found, expires: .now() + Self.lifetime)
        }
        // Failures are not cached.
        found.whenFailure { [weak self] _ in self?.entries.withLockedValue { $0[name] = nil } }
        return found
    }

    private static func getAddresses(_ host: String, port: Int) throws -> [SocketAddress] {
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
