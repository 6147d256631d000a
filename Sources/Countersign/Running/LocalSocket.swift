// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connection over a unix-domain socket that carries lines. Every call blocks, for ``patienceSeconds`` at most.
struct LocalSocket: ~Copyable {
    private let descriptor: Int32

    static let patienceSeconds = 5
    /// The longest line, in bytes.
    static let lineBytes = 64 << 10

    /// Takes over a descriptor.
    init(adopting descriptor: Int32) {
        self.descriptor = descriptor
        var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, length)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, length)
    }

    deinit { close(descriptor) }

    /// Nil where nobody listens.
    static func connect(to path: String) throws(CountersignError) -> LocalSocket? {
        let descriptor = try make()
        let reached = try withAddress(path) { Glibc.connect(descriptor, $0, $1) }
        guard reached == 0 else {
            let reason = errno
            close(descriptor)
            if reason == ENOENT || reason == ECONNREFUSED || reason == ENOTDIR { return nil }
            throw .system(reason, "cannot reach \(path)")
        }
        return LocalSocket(adopting: descriptor)
    }

    /// A descriptor that listens at `path`, mode 0600. What a server that is gone has left there is removed.
    static func listen(at path: String) throws(CountersignError) -> Int32 {
        _ = unlink(path)
        let descriptor = try make()
        let before = umask(0o177)
        let bound = try withAddress(path) { bind(descriptor, $0, $1) }
        let reason = errno
        umask(before)
        guard bound == 0 else {
            close(descriptor)
            throw .system(reason, "cannot listen on \(path)")
        }
        guard Glibc.listen(descriptor, 8) == 0 else {
            let reason = errno
            close(descriptor)
            throw .system(reason, "cannot listen on \(path)")
        }
        return descriptor
    }

    /// The user of the process at the other end, as the kernel says.
    var peerUser: UInt32? {
        // A struct ucred of <sys/socket.h>, which the Glibc module leaves out.
        var credentials: (process: pid_t, user: uid_t, group: gid_t) = (0, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
        return credentials.user
    }

    /// Whether all of it went out.
    func send(line: [UInt8]) -> Bool {
        let bytes = line + [UInt8(ascii: "\n")]
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 || errno == EINTR else { return false }
            sent += max(count, 0)
        }
        return true
    }

    /// The next line without its end; nil when the other side has closed, is too slow, or sends too long a line.
    func receiveLine() -> [UInt8]? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.count <= Self.lineBytes {
            let count = recv(descriptor, &byte, 1, 0)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return nil }
            if byte == UInt8(ascii: "\n") { return line }
            line.append(byte)
        }
        return nil
    }

    // MARK: Making

    private static func make() throws(CountersignError) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system(errno, "cannot make a socket") }
        return descriptor
    }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(CountersignError) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < room else {
            throw CountersignError(
                .environment, "the path \(path) is longer than the \(room - 1) bytes that a socket's may have",
                hint: "use a home with a shorter path")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
