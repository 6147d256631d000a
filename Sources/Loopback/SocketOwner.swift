// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Looks up the owner of the other end of a loopback TCP connection in the kernel (NETLINK_SOCK_DIAG, sock_diag(7)).
///
/// An answer with inode 0 is an orphan: the client has already closed, and the kernel reports uid 0 for any owner. It
/// counts as no answer, and so does any error.
package enum SocketOwner {
    package struct Owner: Equatable, Sendable {
        package let uid: UInt32
        package let inode: UInt32
    }

    /// An address and port of TCP. `family` is `AF_INET` or `AF_INET6`; the address has 4 or 16 bytes, in network byte
    /// order.
    package struct Endpoint: Equatable, Sendable {
        let family: UInt8
        let bytes: [UInt8]
        let port: UInt16

        package init(_ address: sockaddr_in) {
            var raw = address.sin_addr
            family = UInt8(AF_INET)
            bytes = withUnsafeBytes(of: &raw) { Array($0) }
            port = UInt16(bigEndian: address.sin_port)
        }

        package init(_ address: sockaddr_in6) {
            var raw = address.sin6_addr
            family = UInt8(AF_INET6)
            bytes = withUnsafeBytes(of: &raw) { Array($0) }
            port = UInt16(bigEndian: address.sin6_port)
        }

        /// The result of `name`, which is `getsockname` or `getpeername`, for a socket; nil for another family.
        fileprivate init?(
            of descriptor: Int32,
            _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
        ) {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let result = withUnsafeMutablePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name(descriptor, $0, &length) }
            }
            guard result == 0 else { return nil }
            switch Int32(storage.ss_family) {
            case AF_INET: self = withUnsafeBytes(of: &storage) { Self($0.load(as: sockaddr_in.self)) }
            case AF_INET6: self = withUnsafeBytes(of: &storage) { Self($0.load(as: sockaddr_in6.self)) }
            default: return nil
            }
        }
    }

    /// The process or the system has no descriptors left, so the look-up in the kernel is impossible.
    package struct NoDescriptors: Error {}

    /// The owner of the other end of an accepted connection. Also nil if this process has no descriptors left.
    package static func ofPeer(of descriptor: Int32) -> Owner? {
        guard let client = Endpoint(of: descriptor, { getpeername($0, $1, $2) }),
            let server = Endpoint(of: descriptor, { getsockname($0, $1, $2) })
        else { return nil }
        return try? find(client: client, server: server)
    }

    /// The owner of the socket whose local address is `client` and whose peer is `server`.
    package static func find(client: Endpoint, server: Endpoint) throws(NoDescriptors) -> Owner? {
        let descriptor = socket(AF_NETLINK, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), netlinkSockDiag)
        guard descriptor >= 0 else {
            if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) { throw NoDescriptors() }
            return nil
        }
        defer { close(descriptor) }
        var timeout = timeval(tv_sec: 0, tv_usec: 200_000)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))

        let request = message(client, server)
        guard request.withUnsafeBytes({ send(descriptor, $0.baseAddress, $0.count, 0) }) == request.count else {
            return nil
        }
        var reply = [UInt8](repeating: 0, count: 4096)
        let received = reply.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        guard received > 0 else { return nil }
        return owner(in: reply.prefix(received))
    }

    // struct nlmsghdr (16 bytes) and struct inet_diag_req_v2 (56 bytes) of <linux/inet_diag.h>. Ports and addresses are
    // in network byte order, everything else in host byte order.
    private static let netlinkSockDiag: Int32 = 4
    private static let sockDiagByFamily: UInt16 = 20
    private static let headerBytes = 16

    private static func message(_ client: Endpoint, _ server: Endpoint) -> [UInt8] {
        var bytes: [UInt8] = []
        func host<Value: FixedWidthInteger>(_ value: Value) { withUnsafeBytes(of: value) { bytes += Array($0) } }
        func network(_ value: UInt16) { bytes += [UInt8(value >> 8), UInt8(value & 0xFF)] }
        host(UInt32(headerBytes + 56))
        host(sockDiagByFamily)
        host(UInt16(1))  // NLM_F_REQUEST
        host(UInt32(1))
        host(UInt32(0))
        bytes += [client.family, UInt8(IPPROTO_TCP), 0, 0]
        host(UInt32.max)  // all states
        network(client.port)
        network(server.port)
        bytes += client.bytes + [UInt8](repeating: 0, count: 16 - client.bytes.count)
        bytes += server.bytes + [UInt8](repeating: 0, count: 16 - server.bytes.count)
        host(UInt32(0))  // any interface
        host(UInt64.max)  // INET_DIAG_NOCOOKIE
        return bytes
    }

    private static func owner(in reply: ArraySlice<UInt8>) -> Owner? {
        func word(_ offset: Int) -> UInt32? {
            guard offset + 4 <= reply.count else { return nil }
            return reply[(reply.startIndex + offset)..<(reply.startIndex + offset + 4)]
                .withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
        }
        // struct inet_diag_msg: family, state, timer, retrans, sockid (48), expires, rqueue, wqueue, uid, inode.
        guard reply.count >= headerBytes + 72, let kind = word(4), UInt16(kind & 0xFFFF) == sockDiagByFamily,
            let uid = word(headerBytes + 64), let inode = word(headerBytes + 68), inode != 0
        else { return nil }
        return Owner(uid: uid, inode: inode)
    }
}
