// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import Foundation
import Glibc
import NIOCore
import NIOPosix
import CountersignSitePolicy
import CountersignTLS
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// A proxy, and connections through it whose two ends the test has.
final class TunnelStage: Sendable {
    struct Tunnel: Sendable {
        let client: BulkSocket
        let origin: BulkSocket

        func close() {
            Glibc.close(client.descriptor)
            Glibc.close(origin.descriptor)
        }
    }

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let listener: ProxyListener
    private let proxyPort: Int
    /// The port that the origin listens on.
    private let door: Int32
    let originPort: Int

    /// `options`: the origin is listed as an http site with these; nil: it is not listed. `password` is the enrolled
    /// one of `jdoe`. `silence` is ``ProxyConfiguration/tunnelSilence``.
    init(
        accessLog: AccessLog? = nil, options: String? = nil, password: String? = nil,
        silence: TimeAmount = .milliseconds(200)
    ) async throws {
        door = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let any = try SocketAddress(ipAddress: "127.0.0.1", port: 0)
        let descriptor = door
        #expect(any.withSockAddr { bind(descriptor, $0, socklen_t($1)) } == 0)
        listen(door, 128)
        // A connection that never comes fails the test that waits for it.
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(door, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        originPort = BulkSocket.port(of: door)
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.drainSeconds = 0
        configuration.tunnelSilence = silence
        let line = options.map { "http://127.0.0.1:\(BulkSocket.port(of: descriptor)) \($0)" }
        let credential = password.map {
            PasswordCredential(name: "enrollment", user: "jdoe", password: Secret(utf8: $0), generation: 1)
        }
        let policy = Policy(
            sites: try SiteList(files: [("t.sites", line ?? "")]),
            enrolled: .open(credentials: credential.map { ["enrollment": $0] } ?? [:], identities: []),
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 1_800_000_000 }),
            interceptionAuthority: nil, generation: 1)
        let services = ProxyServices(
            configuration: configuration, policy: CurrentPolicy(policy), accessLog: accessLog, pseudonym: "csn-test",
            wallClock: { 1_800_000_000 })
        listener = try await ProxyListener(services: services, group: group) { _ in }
        let name = try #require(try await listener.listen().first)
        proxyPort = try #require(name.split(separator: ":").last.flatMap { Int($0) })
    }

    /// `first` is sent together with the CONNECT.
    func tunnel(_ first: String = "") async throws -> Tunnel {
        let way = try await way(connect + first)
        _ = await onThread { way.client.head() }
        return way
    }

    /// The origin accepts no more connections.
    func closeOrigin() { shutdown(door, Int32(SHUT_RDWR)) }

    /// A client that has sent a CONNECT and `first`, and everything that it receives until the end.
    func refused(_ first: String) async throws -> String {
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: proxyPort)
        let request = connect + first
        return await onThread {
            let client = BulkSocket(connectedTo: address)
            defer { close(client.descriptor) }
            #expect(client.send(text: request))
            return client.text(.max)
        }
    }

    private var connect: String { "CONNECT 127.0.0.1:\(originPort) HTTP/1.1\r\nHost: a\r\n\r\n" }

    /// Sends a request and returns when the origin has read its head.
    func exchange(_ method: String, fields: String = "") async throws -> Tunnel {
        let place = "127.0.0.1:\(originPort)"
        let way = try await way("\(method) http://\(place)/ HTTP/1.1\r\nHost: \(place)\r\n\(fields)\r\n")
        let head = await onThread { way.origin.head() }
        #expect(head.hasPrefix("\(method) / HTTP/1.1\r\n"))
        return way
    }

    /// The next connection of the proxy to the origin.
    func nextOrigin() async -> BulkSocket {
        let door = door
        return await onThread { BulkSocket(accept(door, nil, nil)) }
    }

    private func way(_ request: String) async throws -> Tunnel {
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: proxyPort)
        let door = door
        return await onThread {
            let client = BulkSocket(connectedTo: address)
            #expect(client.send(text: request))
            return Tunnel(client: client, origin: BulkSocket(accept(door, nil, nil)))
        }
    }

    func stop() async throws {
        await listener.stop()
        try await group.shutdownGracefully()
        close(door)
    }
}

/// Runs a blocking function on a thread of its own.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
    }
}

/// A connected blocking socket with a timeout of 20 seconds.
struct BulkSocket: Sendable {
    let descriptor: Int32

    /// The test data repeats after a prime number of bytes, so that a lost or repeated part is noticed.
    static let pattern: [UInt8] = {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        return (0..<1_048_583).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state)
        }
    }()

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        setPatience(.seconds(20))
    }

    init(connectedTo address: SocketAddress) {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #expect(address.withSockAddr { connect(client, $0, socklen_t($1)) } == 0)
        self.init(client)
    }

    func setPatience(_ time: TimeAmount) {
        let microseconds = Int(time.nanoseconds / 1000)
        var patience = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// Reads a head without any bytes after it.
    func head() -> String {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while head.suffix(4) != [13, 10, 13, 10], recv(descriptor, &byte, 1, 0) == 1 { head.append(byte) }
        return String(decoding: head, as: UTF8.self)
    }

    /// Reads `count` bytes, or up to the end.
    func text(_ count: Int) -> String {
        var text: [UInt8] = []
        var byte: UInt8 = 0
        while text.count < count, recv(descriptor, &byte, 1, 0) == 1 { text.append(byte) }
        return String(decoding: text, as: UTF8.self)
    }

    func send(text: String) -> Bool { send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) -> Bool {
        Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    func sendAll(_ count: Int, seed: Int) -> Bool {
        send(upTo: count, seed: seed) == count
    }

    /// Sends bytes in pieces of many sizes until the timeout. Returns their number.
    func send(upTo count: Int, seed: Int) -> Int {
        var sent = 0
        return Self.pattern.withUnsafeBytes { pattern in
            while sent < count {
                let start = (sent + seed) % pattern.count
                let length = min(count - sent, pattern.count - start, Int.random(in: 1...200_000))
                let written = Glibc.send(
                    descriptor, pattern.baseAddress?.advanced(by: start), length, Int32(MSG_NOSIGNAL))
                guard written > 0 else { break }
                sent += written
            }
            return sent
        }
    }

    /// Whether exactly these bytes arrive next, read in pieces of many sizes.
    func expects(_ count: Int, seed: Int) -> Bool {
        let most = 200_000
        var buffer = [UInt8](repeating: 0, count: most)
        var received = 0
        return Self.pattern.withUnsafeBytes { pattern in
            while received < count {
                let start = (received + seed) % pattern.count
                let length = min(count - received, pattern.count - start, Int.random(in: 1...most))
                let read = recv(descriptor, &buffer, length, 0)
                guard read > 0, let base = pattern.baseAddress, memcmp(buffer, base.advanced(by: start), read) == 0
                else { return false }
                received += read
            }
            return true
        }
    }

    /// The result of the next read: a positive number of bytes, 0 for the end, or a negative error number.
    func next() -> Int {
        var byte: UInt8 = 0
        let read = recv(descriptor, &byte, 1, 0)
        return read < 0 ? -Int(errno) : read
    }

    /// Reads everything. Returns 0 at the end, or a negative error number.
    func drain() -> Int {
        var buffer = [UInt8](repeating: 0, count: 200_000)
        while true {
            let read = recv(descriptor, &buffer, buffer.count, 0)
            guard read > 0 else { return read < 0 ? -Int(errno) : 0 }
        }
    }

    func endOutput() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Closes with a reset.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        close(descriptor)
    }

    /// The port that the socket is bound to.
    static func port(of descriptor: Int32) -> Int {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
