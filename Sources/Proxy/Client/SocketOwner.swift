// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore

/// Looks up the owner of the other end of a loopback TCP connection in the kernel (NETLINK_SOCK_DIAG, sock_diag(7)).
///
/// An answer with inode 0 is an orphan: the client has already closed, and the kernel reports uid 0 for any owner. It
/// counts as no answer, and so does any error.
enum SocketOwner {
    struct Owner: Equatable {
        let uid: UInt32
        let inode: UInt32
    }

    /// The process or the system has no descriptors left, so that the kernel cannot be asked.
    struct NoDescriptors: Error {}

    /// The owner of the socket whose local address is `client` and whose peer is `server`.
    static func find(client: SocketAddress, server: SocketAddress) throws(NoDescriptors) -> Owner? {
        guard let (family, clientBytes, clientPort) = parts(client), let (_, serverBytes, serverPort) = parts(server)
        else { return nil }
        let descriptor = socket(AF_NETLINK, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), netlinkSockDiag)
        guard descriptor >= 0 else {
            if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) { throw NoDescriptors() }
            return nil
        }
        defer { close(descriptor) }
        var timeout = timeval(tv_sec: 0, tv_usec: 200_000)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))

        let request = message(family, clientBytes, clientPort, serverBytes, serverPort)
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

    private static func message(
        _ family: UInt8, _ client: [UInt8], _ clientPort: UInt16, _ server: [UInt8], _ serverPort: UInt16
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        func host<Value: FixedWidthInteger>(_ value: Value) { withUnsafeBytes(of: value) { bytes += Array($0) } }
        func network(_ value: UInt16) { bytes += [UInt8(value >> 8), UInt8(value & 0xFF)] }
        host(UInt32(headerBytes + 56))
        host(sockDiagByFamily)
        host(UInt16(1))  // NLM_F_REQUEST
        host(UInt32(1))
        host(UInt32(0))
        bytes += [family, UInt8(IPPROTO_TCP), 0, 0]
        host(UInt32.max)  // all states
        network(clientPort)
        network(serverPort)
        bytes += client + [UInt8](repeating: 0, count: 16 - client.count)
        bytes += server + [UInt8](repeating: 0, count: 16 - server.count)
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

    private static func parts(_ address: SocketAddress) -> (family: UInt8, bytes: [UInt8], port: UInt16)? {
        switch address {
        case .v4(let address):
            var raw = address.address
            return (UInt8(AF_INET), withUnsafeBytes(of: &raw.sin_addr) { Array($0) }, UInt16(bigEndian: raw.sin_port))
        case .v6(let address):
            var raw = address.address
            return (
                UInt8(AF_INET6), withUnsafeBytes(of: &raw.sin6_addr) { Array($0) }, UInt16(bigEndian: raw.sin6_port)
            )
        case .unixDomainSocket:
            return nil
        }
    }
}
