// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import CountersignProxy

/// A door as `--listen` writes it: `HOST:PORT`, `[V6]:PORT` or `unix:PATH`.
struct ListenAddress {
    let text: String
    let door: ProxyConfiguration.ListeningAddress

    init(parsing text: String) throws {
        self.text = text
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst("unix:".count))
            guard !path.isEmpty, path.utf8.count <= 107, !path.utf8.contains(0) else {
                throw ValidationError("--listen \(text.debugDescription) has no path, or one longer than 107 bytes")
            }
            door = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = Self.port(text[text.index(after: colon)...]) else {
            throw ValidationError("--listen \(text.debugDescription) is neither HOST:PORT nor unix:PATH")
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard Self.isAddress(host, AF_INET6) else {
                throw ValidationError("--listen \(text.debugDescription) has no IPv6 address in its brackets")
            }
        } else if host == "localhost" {
            host = "127.0.0.1"
        } else if !Self.isAddress(host, AF_INET) {
            throw ValidationError(
                "--listen \(text.debugDescription) needs an IP address: 127.0.0.1, or an IPv6 one in brackets")
        }
        door = .tcp(host: host, port: port)
    }

    /// Whether only this machine reaches it.
    var isLocal: Bool {
        switch door {
        case .unix: true
        case .tcp(let host, _): host.hasPrefix("127.") || Self.isLoopback6(host)
        }
    }

    private static func port(_ digits: Substring) -> Int? {
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return UInt16(digits).map(Int.init)
    }

    private static func isAddress(_ host: String, _ family: Int32) -> Bool {
        var address = in6_addr()
        return inet_pton(family, host, &address) == 1
    }

    private static func isLoopback6(_ host: String) -> Bool {
        var address = in6_addr()
        guard inet_pton(AF_INET6, host, &address) == 1 else { return false }
        return withUnsafeBytes(of: &address) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }
}
