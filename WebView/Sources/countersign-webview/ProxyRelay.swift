// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc
import WebViewProtocol

/// Stands between WebKit and a proxy that wants a password.
///
/// libsoup 3.2 sends a proxy's password to every https server too, inside the tunnel. WebKit therefore does not learn
/// it: it connects to this relay on loopback, which adds it to CONNECT requests. The relay serves only connections of
/// this process's children. Plain http is refused.
struct ProxyRelay {
    let port: UInt16
    let failures = TunnelFailures()

    /// Starts to listen. Nil if the machine has no socket left.
    init?(_ proxy: ProxyAddress) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(port: 0)
        let isListening = Self.withPointer(&address) { bind(listener, $0, $1) == 0 } && listen(listener, 64) == 0
        guard listener >= 0, isListening, let port = Self.port(listener, getsockname) else { return nil }
        self.port = port
        Self.thread { [failures] in
            while true {
                let client = accept(listener, nil, nil)
                if client >= 0 { Self.thread { Self.serve(client, proxy, relayPort: port, failures) } }
            }
        }
    }

    private static func serve(
        _ client: Int32, _ proxy: ProxyAddress, relayPort: UInt16, _ failures: TunnelFailures
    ) {
        defer { close(client) }
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        guard let peer = port(client, getpeername), PeerProcess.isChild(peerPort: peer, ownPort: relayPort) else {
            return
        }
        guard let request = readHead(client).flatMap({ TunnelRequest(head: $0) }) else {
            write(client, Array("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
            return
        }
        guard let upstream = connect(to: proxy) else {
            failures[request.authority] = "the proxy cannot be reached"
            write(client, Array("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
            return
        }
        defer { close(upstream) }
        write(upstream, request.head(for: proxy))
        guard let head = readHead(upstream) else {
            failures[request.authority] = "the proxy does not answer"
            return
        }
        // Before WebKit has it, which then asks.
        let response = TunnelResponse(head: head)
        failures[request.authority] = response?.isOpen == false ? response?.reason : nil
        guard write(client, head) else { return }
        let other = thread { copy(from: upstream, to: client) }
        copy(from: client, to: upstream)
        g_thread_join(other)
    }

    /// Copies until the end, and passes the end on.
    private static func copy(from: Int32, to: Int32) {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = read(from, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0, write(to, buffer[..<count]) else { break }
        }
        shutdown(to, Int32(SHUT_WR))
    }

    @discardableResult
    private static func write(_ file: Int32, _ bytes: some Collection<UInt8>) -> Bool {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(file, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count < 0 && errno != EINTR { return false }
            rest = rest.dropFirst(max(0, count))
        }
        return true
    }

    /// Byte by byte, so that nothing after the head is read.
    private static func readHead(_ file: Int32) -> [UInt8]? {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while head.count < TunnelRequest.headBytes {
            guard read(file, &byte, 1) == 1 else { return nil }
            head.append(byte)
            if head.suffix(4) == [13, 10, 13, 10] { return head }
        }
        return nil
    }

    private static func connect(to proxy: ProxyAddress) -> Int32? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(proxy.host, String(proxy.port), &hints, &list) == 0 else { return nil }
        defer { freeaddrinfo(list) }
        var next = list
        while let info = next?.pointee {
            let file = socket(info.ai_family, info.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), info.ai_protocol)
            if file >= 0 && Glibc.connect(file, info.ai_addr, info.ai_addrlen) == 0 { return file }
            close(file)
            next = info.ai_next
        }
        return nil
    }

    // MARK: Addresses and threads

    private static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    private static func withPointer<Result>(
        _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private static func port(
        _ file: Int32, _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> UInt16? {
        var address = loopback(port: 0)
        let result = withPointer(&address) { pointer, size in
            var size = size
            return name(file, pointer, &size)
        }
        return result == 0 ? UInt16(bigEndian: address.sin_port) : nil
    }

    @discardableResult
    private static func thread(_ body: @escaping () -> Void) -> UnsafeMutablePointer<GThread>? {
        g_thread_new(
            "relay",
            { data in
                Callback<Void>.take(data)(())
                return nil
            }, Callback<Void>(body).retained())
    }
}
