// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connection over a Unix-domain socket that exchanges lines. Every call blocks for up to ``timeoutSeconds``.
struct LocalSocket: ~Copyable {
    private let descriptor: Int32

    static let timeoutSeconds = 5
    /// The longest accepted line, in bytes.
    static let lineBytes = 64 << 10

    /// Takes ownership of a descriptor.
    init(adopting descriptor: Int32) {
        self.descriptor = descriptor
        var timeout = timeval(tv_sec: Self.timeoutSeconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, length)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, length)
    }

    deinit { close(descriptor) }

    /// Returns nil if no process is listening.
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

    /// Returns a descriptor that listens at `path` with mode 0600. Removes a socket file that an earlier server has
    /// left behind.
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

    /// The user of the process at the other end, as reported by the kernel.
    var peerUser: UInt32? {
        // `struct ucred` of <sys/socket.h>, which the Glibc module does not export.
        var credentials: (process: pid_t, user: uid_t, group: gid_t) = (0, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
        return credentials.user
    }

    /// Returns whether the whole line was sent.
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

    /// The next line without its terminator; nil if the peer closes, times out, or sends a line that is too long.
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

    // MARK: Sockets

    private static func make() throws(CountersignError) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system(errno, "cannot create a socket") }
        return descriptor
    }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(CountersignError) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < capacity else {
            throw CountersignError(
                .environment, "the path \(path) is longer than \(capacity - 1) bytes, the limit for a socket",
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
