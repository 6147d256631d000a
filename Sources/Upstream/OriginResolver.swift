// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOPosix

/// Names to addresses, for the Happy Eyeballs connector (RFC 8305) of NIO. `localhost` and every name under it are loopback
/// without asking anybody (RFC 6761 §6.3); the rest is `getaddrinfo`, on a thread pool.
package final class OriginResolver: Resolver, Sendable {
    private let loop: any EventLoop
    private let pool: NIOThreadPool

    package init(loop: any EventLoop, pool: NIOThreadPool = .singleton) {
        self.loop = loop
        self.pool = pool
    }

    package func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        lookUp(host, port: port, family: AF_INET, loopback: "127.0.0.1")
    }

    package func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        lookUp(host, port: port, family: AF_INET6, loopback: "::1")
    }

    package func cancelQueries() {}

    private func lookUp(_ host: String, port: Int, family: Int32, loopback: String) -> EventLoopFuture<[SocketAddress]>
    {
        if host == "localhost" || host.hasSuffix(".localhost") {
            return loop.makeCompletedFuture { [try SocketAddress(ipAddress: loopback, port: port)] }
        }
        return pool.runIfActive(eventLoop: loop) { try Self.getAddresses(host, port: port, family: family) }
    }

    private static func getAddresses(_ host: String, port: Int, family: Int32) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = family
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
