// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignHome
import Glibc

/// A connection over a Unix-domain socket that exchanges lines and secrets. A call that waits for the peer fails when
/// the peer has accepted, sent or read nothing for ``timeoutSeconds``.
package struct LocalSocket: ~Copyable {
    private let descriptor: Int32

    static let timeoutSeconds = 5
    /// The longest line that a server accepts, in bytes: the largest certificate chain in Base64, with room for the
    /// rest.
    static let lineBytes = 4 << 20
    /// The longest line of a request in HTTP that a server accepts, in bytes.
    static let headLineBytes = 16 << 10
    /// The longest line that a client accepts, in bytes: a list of all records of a vault.
    static let replyBytes = 32 << 20

    /// Takes ownership of a descriptor.
    init(adopting descriptor: Int32) {
        self.descriptor = descriptor
        var timeout = timeval(tv_sec: Self.timeoutSeconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, length)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, length)
    }

    deinit { close(descriptor) }

    /// A call that sends fails when the peer has read nothing for that long.
    func setSendTimeout(seconds: Int) {
        var timeout = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Returns nil if no process is listening. Throws `refused` if the listening process accepts no connections.
    package static func connect(to path: String) throws(CountersignError) -> LocalSocket? {
        // The time limit for sending also applies to connecting.
        let socket = LocalSocket(adopting: try make())
        let reached = try withAddress(path) { Glibc.connect(socket.descriptor, $0, $1) }
        guard reached == 0 else {
            let reason = errno
            if reason == ENOENT || reason == ECONNREFUSED || reason == ENOTDIR { return nil }
            if reason == EAGAIN {
                throw CountersignError(.refused, "the process that listens on \(path) does not respond")
            }
            throw .system(reason, "cannot reach \(path)")
        }
        return socket
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

    /// The process at the other end and its user, as reported by the kernel.
    var peer: (process: Int32, user: UInt32)? {
        // `struct ucred` of <sys/socket.h>, which the Glibc module does not export.
        var credentials: (process: pid_t, user: uid_t, group: gid_t) = (0, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
        return (credentials.process, credentials.user)
    }

    /// Whether the peer has closed the connection, or at least its sending direction.
    var isClosedByPeer: Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        return count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
    }

    /// Waits until the peer has sent something or closed its end. Returns whether it has.
    func waitForInput(seconds: Int) -> Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, Int32(seconds * 1000)) > 0
    }

    /// Closes the sending direction.
    func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Closes the receiving direction.
    func endReceiving() { shutdown(descriptor, Int32(SHUT_RD)) }

    // MARK: Sending

    /// Returns whether the whole line was sent.
    func send(line: [UInt8]) -> Bool {
        (line + [UInt8(ascii: "\n")]).withUnsafeBytes { send($0) }
    }

    /// Returns whether all bytes were sent.
    func send(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { send($0) } }

    /// Returns whether the whole secret was sent.
    func send(_ secret: Secret) -> Bool {
        secret.withBytes { send($0) }
    }

    private func send(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = Glibc.send(
                descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            guard count > 0 || errno == EINTR else { return false }
            sent += max(count, 0)
        }
        return true
    }

    // MARK: Receiving

    /// A received line, or the reason for its absence.
    enum Received: Equatable {
        /// Without its terminator.
        case line([UInt8])
        /// The line is longer than the limit.
        case tooLong
        /// The peer has closed the connection, or has not sent anything in time.
        case nothing
    }

    /// Receives the next line, and nothing after it: a secret may follow, which must not be left in ordinary memory.
    func receiveLine(upTo limitBytes: Int = Self.lineBytes) -> Received {
        var line: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        defer { chunk.wipe() }
        while true {
            let seen = chunk.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress, $0.count, Int32(MSG_PEEK))
            }
            if seen < 0, errno == EINTR { continue }
            guard seen > 0 else { return .nothing }
            let end = chunk[..<seen].firstIndex(of: UInt8(ascii: "\n"))
            let count = end.map { $0 + 1 } ?? seen
            guard receive(count: count, into: &chunk) else { return .nothing }
            guard line.count + (end ?? count) <= limitBytes else { return .tooLong }
            line += chunk[..<(end ?? count)]
            if end != nil { return .line(line) }
        }
    }

    /// Receives exactly `count` bytes. Nil if the peer sends fewer.
    func receive(count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return receive(count: count, into: &bytes) ? bytes : nil
    }

    /// Receives exactly `count` bytes, which are written to the secret's memory only. Nil if the peer sends fewer.
    func receiveSecret(count: Int) -> Secret? {
        var isWhole = false
        let secret = Secret(count: count) { isWhole = receive(into: $0) }
        return isWhole ? secret : nil
    }

    private func receive(count: Int, into bytes: inout [UInt8]) -> Bool {
        bytes.withUnsafeMutableBytes { receive(into: UnsafeMutableRawBufferPointer(rebasing: $0[..<count])) }
    }

    private func receive(into bytes: UnsafeMutableRawBufferPointer) -> Bool {
        var received = 0
        while received < bytes.count {
            let count = recv(descriptor, bytes.baseAddress.map { $0 + received }, bytes.count - received, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            received += count
        }
        return true
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
