// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Ports and connections on 127.0.0.1.
package enum Loopback {
    /// Different ports that were free a moment ago. The system gives none of them to a connection or to a server that
    /// asks for any port, and this process gives none of them out again; so another program has one only if it asks for
    /// that number. For a port that stays closed, use `RefusingPort`.
    package static func freePorts(_ count: Int) throws -> [Int] {
        try given.withLock { given in
            var found: [Int] = []
            for port in (10_240..<firstEphemeralPort).shuffled() where !given.contains(port) {
                if found.count == count { break }
                if (try? RefusingPort(number: port)) != nil { found.append(port) }
            }
            guard found.count == count else { throw HarnessError("no free port on 127.0.0.1") }
            given.formUnion(found)
            return found
        }
    }

    private static let given = Mutex<Set<Int>>([])

    /// ip(7), `ip_local_port_range`.
    private static let firstEphemeralPort: Int = {
        let range = try? String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)
        return max(16_384, range?.split(separator: "\t").first.flatMap { Int($0) } ?? 32_768)
    }()

    /// Whether the port accepts connections.
    package static func answers(port: Int) -> Bool {
        guard let descriptor = try? connect(port: port) else { return false }
        close(descriptor)
        return true
    }

    static func connect(port: Int) throws -> Int32 {
        let descriptor = socket(AF_INET, streamType, 0)
        var address = Self.address(port: port)
        let done = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                Foundation.connect(descriptor, raw, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard done == 0 else {
            close(descriptor)
            throw HarnessError("no server listens on 127.0.0.1:\(port)")
        }
        return descriptor
    }

    static func connect(path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, streamType, 0)
        guard with(path: path, { Foundation.connect(descriptor, $0, $1) }) == 0 else {
            close(descriptor)
            throw HarnessError("no server listens on \"\(path)\": \(String(cString: strerror(errno)))")
        }
        return descriptor
    }

    static func bind(_ descriptor: Int32, path: String) -> Bool {
        with(path: path) { Foundation.bind(descriptor, $0, $1) } == 0
    }

    /// The result of `body` for the address `path`; -1 if that is too long.
    private static func with(path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { place in
            guard bytes.count < place.count else { return false }
            place.copyBytes(from: bytes)
            return true
        }
        guard fits else { return -1 }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// SOCK_STREAM with SOCK_CLOEXEC.
    static let streamType = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    static let datagramType = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)

    static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }
}

/// A port of 127.0.0.1 that refuses every connection while this value exists. It is bound, so that no other process
/// gets it, but does not listen.
package final class RefusingPort {
    package let number: Int
    private let descriptor: Int32

    package convenience init() throws { try self.init(number: 0) }

    /// 0 is any free port.
    fileprivate init(number wanted: Int) throws {
        descriptor = socket(AF_INET, Loopback.streamType, 0)
        var address = Loopback.address(port: wanted)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                bind(descriptor, raw, length) == 0 && getsockname(descriptor, raw, &length) == 0
            }
        }
        number = Int(UInt16(bigEndian: address.sin_port))
        guard bound else { throw HarnessError("no free port on 127.0.0.1") }
    }

    deinit { close(descriptor) }
}

/// A TCP connection for bytes that no HTTP client would send.
package final class RawConnection {
    private let descriptor: Int32

    package init(port: Int) throws { descriptor = try Loopback.connect(port: port) }

    package init(path: String) throws { descriptor = try Loopback.connect(path: path) }

    deinit { close(descriptor) }

    package func send(_ text: String) throws {
        let bytes = Array(text.utf8)
        guard Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw HarnessError("the peer closed before everything was sent: \(String(cString: strerror(errno)))")
        }
    }

    /// Ends the outgoing half of the connection.
    package func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads until `enough` accepts the received bytes, the peer closes, or the time is up.
    package func receive(seconds: Double = 20, until enough: (String) -> Bool = { _ in false }) -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        let end = ContinuousClock.now + .seconds(seconds)
        while ContinuousClock.now < end, !enough(String(decoding: all, as: UTF8.self)) {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard Foundation.poll(&waiting, 1, 100) > 0 else { continue }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            all += buffer[0..<count]
        }
        return String(decoding: all, as: UTF8.self)
    }
}
