// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// An HTTP/1.1 server on 127.0.0.1 for OCSP responses and revocation lists, one response per connection.
package final class StatusServer: Sendable {
    package struct Request: Sendable {
        package let method: String
        package let path: String
        /// The lines of the head after the first.
        package let fields: [String]
        package let body: [UInt8]
    }

    package enum Reply: Sendable {
        case body([UInt8])
        case status(Int, fields: [String], body: String = "")
        /// A response that announces this many bytes and sends them until the client stops reading.
        case large(Int, announced: Bool)
        /// No response until the server is deinitialised.
        case silence
    }

    package let port: Int
    private let descriptor: Int32
    private let log = Mutex<[Request]>([])

    package init(_ reply: @escaping @Sendable (Request) -> Reply) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                bind(descriptor, raw, length) == 0 && getsockname(descriptor, raw, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard bound, listen(descriptor, 64) == 0 else { throw HarnessError("no free port on 127.0.0.1") }
        Thread.detachNewThread { [weak self, descriptor] in
            while true {
                let client = accept(descriptor, nil, nil)
                guard let self else {
                    if client >= 0 { close(client) }
                    // Only here: another thread might accept on a descriptor that has been closed and used again.
                    close(descriptor)
                    return
                }
                // A signal, or a moment without descriptors.
                guard client >= 0 else {
                    usleep(1_000)
                    continue
                }
                Thread.detachNewThread { [weak self] in
                    defer { close(client) }
                    guard let request = Self.receive(client) else { return }
                    self?.log.withLock { $0.append(request) }
                    Self.send(reply(request), to: client) { [weak self] in self == nil }
                }
            }
        }
    }

    /// Ends the thread, which closes the descriptor.
    deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// The requests so far, in the order of their arrival.
    package var requests: [Request] { log.withLock { $0 } }

    package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    private static func receive(_ client: Int32) -> Request? {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            if let end = all.firstRange(of: Array("\r\n\r\n".utf8)) {
                let head = String(decoding: all[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
                let words = head[0].split(separator: " ").map(String.init)
                let length =
                    head.first { $0.lowercased().hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
                let body = all[end.upperBound...]
                if body.count >= length, words.count == 3 {
                    return Request(
                        method: words[0], path: words[1], fields: Array(head.dropFirst()), body: Array(body))
                }
            }
            let count = recv(client, &buffer, buffer.count, 0)
            guard count > 0, all.count < 1 << 20 else { return nil }
            all += buffer[..<count]
        }
    }

    private static func send(_ reply: Reply, to client: Int32, isOver: () -> Bool) {
        func write(_ bytes: [UInt8]) -> Bool {
            Foundation.send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
        }
        func head(_ status: Int, _ fields: [String]) -> [UInt8] {
            Array(
                (["HTTP/1.1 \(status) Status", "Connection: close"] + fields + ["", ""]).joined(separator: "\r\n").utf8)
        }
        switch reply {
        case .body(let bytes): _ = write(head(200, ["Content-Length: \(bytes.count)"]) + bytes)
        case .status(let status, let fields, let body):
            _ = write(head(status, ["Content-Length: \(body.utf8.count)"] + fields) + Array(body.utf8))
        case .large(let count, let announced):
            guard write(head(200, announced ? ["Content-Length: \(count)"] : [])) else { return }
            let piece = [UInt8](repeating: 0x30, count: 1 << 20)
            for _ in 0..<(count >> 20) where !write(piece) { return }
        case .silence:
            while !isOver() {
                var waiting = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
                var byte: UInt8 = 0
                if poll(&waiting, 1, 50) > 0, recv(client, &byte, 1, 0) <= 0 { return }
            }
        }
    }
}

extension StatusServer {
    /// A responder on loopback: each request is answered by `openssl ocsp`, as the database of `issuer` says and signed
    /// by `signer`. Its own server would listen on all interfaces.
    package static func responder(
        _ authority: OpenSSLAuthority, of issuer: String, signedBy signer: String
    ) throws -> StatusServer {
        let number = Mutex(0)
        return try StatusServer { request in
            let own = number.withLock { number in
                number += 1
                return number
            }
            do {
                return .body(
                    try authority.makeResponse("\(issuer)-\(own)", to: request.body, of: issuer, signedBy: signer))
            } catch {
                return .status(500, fields: [])
            }
        }
    }
}
