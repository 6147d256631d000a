// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Glibc
import NIOCore

/// A socket that accepts clients: made by this process, or inherited from the service manager or from the process that
/// this one replaces. Closes its descriptor only in ``close()``.
package struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// As `host:port` or `unix:PATH`.
    let name: String
    /// Nil for a Unix-domain socket.
    let address: SocketAddress?
    /// What `for=socket:NAME` calls it: the file name of a Unix-domain socket without its extension; nil for others.
    var clientName: String? {
        guard address == nil, let file = name.dropFirst("unix:".count).split(separator: "/").last else { return nil }
        let stem = file.lastIndex(of: ".").map { file[..<$0] } ?? file
        return stem.isEmpty ? nil : String(stem)
    }
    /// The socket file to remove at the end; nil without one, or if it is the service manager's.
    let ownPath: String?
    /// Whether it is in the network namespace of a sandbox, in which everything belongs to this process's command. The
    /// kernel's tables, as this process sees them, do not have its connections.
    let isInSandbox: Bool

    private static let backlog: Int32 = 4096

    /// Throws `IOError` with the reason of the system, and ``NotListening``.
    init(_ address: ProxyConfiguration.ListeningAddress) throws {
        switch address {
        case .tcp(let host, let port):
            let address = try SocketAddress(ipAddress: host, port: port)
            self = try Self(listeningOn: address, ownPath: nil)
        case .unix(let path):
            var found = stat()
            if lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFSOCK { unlink(path) }
            self = try Self(listeningOn: SocketAddress(unixDomainSocketPath: path), ownPath: path)
            chmod(path, 0o600)
        case .inherited(let descriptor, let isOwn):
            try self.init(inherited: descriptor, isOwn: isOwn)
        case .sandbox(let descriptor):
            try self.init(inherited: descriptor, isOwn: true, isInSandbox: true)
        }
    }

    private init(listeningOn address: SocketAddress, ownPath: String?) throws {
        let family =
            switch address {
            case .v4: AF_INET
            case .v6: AF_INET6
            case .unixDomainSocket: AF_UNIX
            }
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
        if ownPath == nil {
            var one: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        }
        let isBound = address.withSockAddr { bind(descriptor, $0, socklen_t($1)) } == 0
        guard isBound, Glibc.listen(descriptor, Self.backlog) == 0 else {
            let reason = errno
            Glibc.close(descriptor)
            throw IOError(errnoCode: reason, reason: isBound ? "listen" : "bind")
        }
        self.descriptor = descriptor
        self.ownPath = ownPath
        isInSandbox = false
        (name, self.address) = try Self.name(of: descriptor)
    }

    private init(inherited descriptor: Int32, isOwn: Bool, isInSandbox: Bool = false) throws {
        guard Self.option(SO_ACCEPTCONN, of: descriptor) == 1,
            Self.option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
        else { throw NotListening(descriptor: descriptor) }
        self.descriptor = descriptor
        self.isInSandbox = isInSandbox
        (name, self.address) = try Self.name(of: descriptor)
        ownPath = isOwn && address == nil ? String(name.dropFirst("unix:".count)) : nil
    }

    /// An inherited descriptor is not a listening stream socket.
    package struct NotListening: Error, CustomStringConvertible {
        let descriptor: Int32
        package var description: String { "the inherited descriptor \(descriptor) is not a listening stream socket" }
    }

    /// The address of an inherited socket, as `host:port` or `unix:PATH`; nil if the descriptor is not a listening
    /// socket.
    package static func name(ofInherited descriptor: Int32) -> String? {
        (try? ListeningSocket(inherited: descriptor, isOwn: false))?.name
    }

    /// A copy of the descriptor, for an event loop, which closes it.
    func copy() throws -> Int32 {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw IOError(errnoCode: errno, reason: "dup") }
        return copy
    }

    func close() { Glibc.close(descriptor) }

    private static func option(_ option: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : nil
    }

    private static func name(of descriptor: Int32) throws -> (String, SocketAddress?) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isKnown = withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
        }
        guard isKnown else { throw IOError(errnoCode: errno, reason: "getsockname") }
        let family = Int32(storage.ss_family)
        return try withUnsafeBytes(of: &storage) { bytes in
            switch family {
            case AF_INET:
                let address = SocketAddress(bytes.loadUnaligned(as: sockaddr_in.self))
                return (HostText.joined(address.ipAddress ?? "", address.port ?? 0), address)
            case AF_INET6:
                let address = SocketAddress(bytes.loadUnaligned(as: sockaddr_in6.self))
                return (HostText.joined(address.ipAddress ?? "", address.port ?? 0), address)
            case AF_UNIX:
                let path = bytes[MemoryLayout<sa_family_t>.size..<Int(length)].prefix { $0 != 0 }
                return ("unix:\(String(decoding: path, as: UTF8.self))", nil)
            default: throw NotListening(descriptor: descriptor)
            }
        }
    }
}
