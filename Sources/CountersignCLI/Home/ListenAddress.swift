// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignAddresses
import CountersignProxy
import Glibc

/// The value of `--listen`: `HOST:PORT`, `[V6]:PORT` or `unix:PATH`.
struct ListenAddress {
    let text: String
    let address: ProxyConfiguration.ListeningAddress

    init(parsing text: String) throws {
        self.text = text
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst("unix:".count))
            guard !path.isEmpty, path.utf8.count <= 107, !path.utf8.contains(0) else {
                throw ValidationError("--listen \(text.debugDescription) needs a path of 1 to 107 bytes")
            }
            address = .unix(path: path)
            return
        }
        if let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]), port > 65_535 {
            throw ValidationError("--listen \(text.debugDescription): there is no port \(port); the last is 65535")
        }
        guard let colon = text.lastIndex(of: ":"), let port = Self.port(text[text.index(after: colon)...]) else {
            throw ValidationError("--listen \(text.debugDescription) is neither HOST:PORT nor unix:PATH")
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard Self.isAddress(host, AF_INET6) else {
                throw ValidationError("--listen \(text.debugDescription) needs an IPv6 address in the brackets")
            }
        } else if host == "localhost" {
            host = "127.0.0.1"
        } else if !Self.isAddress(host, AF_INET) {
            throw ValidationError(
                "--listen \(text.debugDescription) needs an IPv4 address, or an IPv6 address in brackets"
            )
        }
        address = .tcp(host: host, port: port)
    }

    /// Whether only this machine can connect: a loopback address or a Unix domain socket.
    var isLocal: Bool {
        switch address {
        case .unix: true
        case .tcp(let host, _): HostText.isLoopbackAddress(host)
        case .inherited, .sandbox: false
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
}
