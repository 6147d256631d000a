// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore

/// Who is at the other end of a client connection, as the kernel says.
package struct ClientProcess: Equatable, Sendable {
    package var uid: UInt32?
    package var pid: Int32?

    package init(uid: UInt32? = nil, pid: Int32? = nil) {
        self.uid = uid
        self.pid = pid
    }
}

/// `struct ucred` of unix(7), which SO_PEERCRED gives.
struct PeerCredentials: Sendable {
    var pid: Int32 = 0
    var uid: UInt32 = 0
    var gid: UInt32 = 0
}

/// The owner of the other end of a loopback TCP connection, asked of the kernel (NETLINK_SOCK_DIAG, sock_diag(7)).
///
/// An answer with inode 0 is an orphan: the client has already closed, and the kernel then says uid 0 whoever it was. It counts as
/// no answer, as does any error.
enum SocketOwner {
    struct Owner: Equatable {
        let uid: UInt32
        let inode: UInt32
    }

    /// The owner of the socket whose local address is `client` and whose peer is `server`.
    static func find(client: SocketAddress, server: SocketAddress) -> Owner? {
        guard let (family, clientBytes, clientPort) = parts(client), let (_, serverBytes, serverPort) = parts(server)
        else { return nil }
        let descriptor = socket(AF_NETLINK, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), netlinkSockDiag)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var patience = timeval(tv_sec: 0, tv_usec: 200_000)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))

        let request = message(family, clientBytes, clientPort, serverBytes, serverPort)
        guard request.withUnsafeBytes({ send(descriptor, $0.baseAddress, $0.count, 0) }) == request.count else {
            return nil
        }
        var reply = [UInt8](repeating: 0, count: 4096)
        let received = reply.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
        guard received > 0 else { return nil }
        return owner(in: reply.prefix(received))
    }

    // struct nlmsghdr (16 bytes) and struct inet_diag_req_v2 (56 bytes) of <linux/inet_diag.h>, host byte order but for the ports
    // and addresses.
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
        // A struct inet_diag_msg: family, state, timer, retrans, sockid (48), expires, rqueue, wqueue, uid, inode.
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

/// The process that holds a socket, found in /proc. It reads every process of this user: keep it off the event loops.
enum ProcessOfSocket {
    static func find(inode: UInt32) -> Int32? {
        var found: Int32?
        eachProcess { pid in
            if holds(pid, inode) { found = pid }
            return found == nil
        }
        return found
    }

    /// Whether a process below this one, its child or a child of such a one, holds the socket. A process whose files cannot be
    /// seen, or whose parents have gone, is none.
    static func isDescendant(inode: UInt32) -> Bool {
        var parents: [Int32: Int32] = [:]
        eachProcess { pid in
            parents[pid] = parent(of: pid)
            return true
        }
        var family: Set<Int32> = [getpid()]
        var size = 0
        while family.count > size {
            size = family.count
            for (pid, parent) in parents where family.contains(parent) { family.insert(pid) }
        }
        family.remove(getpid())
        return family.contains { holds($0, inode) }
    }

    /// The fourth field of /proc/PID/stat (proc(5)); the second is a name in parentheses, which may have any byte in it.
    private static func parent(of pid: Int32) -> Int32? {
        let file = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = read(file, &bytes, bytes.count)
        guard count > 0, let name = bytes.prefix(count).lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = bytes[..<count][(name + 1)...].split(separator: UInt8(ascii: " "))
        return fields.count > 1 ? Int32(String(decoding: fields[1], as: UTF8.self)) : nil
    }

    private static func holds(_ pid: Int32, _ inode: UInt32) -> Bool {
        let wanted = "socket:[\(inode)]"
        guard let files = opendir("/proc/\(pid)/fd") else { return false }
        defer { closedir(files) }
        while let file = readdir(files) {
            var target = [UInt8](repeating: 0, count: 64)
            let length = target.withUnsafeMutableBytes { buffer in
                buffer.baseAddress.map { readlink("/proc/\(pid)/fd/\(name(of: file))", $0, buffer.count) } ?? 0
            }
            if length > 0, target.prefix(length).elementsEqual(wanted.utf8) { return true }
        }
        return false
    }

    /// Calls `body` with each process until it says false.
    private static func eachProcess(_ body: (Int32) -> Bool) {
        guard let processes = opendir("/proc") else { return }
        defer { closedir(processes) }
        while let entry = readdir(processes) {
            if let pid = Int32(name(of: entry)), !body(pid) { return }
        }
    }

    private static func name(of entry: UnsafeMutablePointer<dirent>) -> String {
        withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
    }
}
