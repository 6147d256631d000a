// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Listening sockets on the loopback addresses of a redirect URI, all on one port.
struct RedirectSockets {
    let descriptors: [Int32]
    let port: UInt16

    /// The number of attempts to find a port that is free on both addresses.
    private static let attempts = 32

    init(for address: RedirectAddress) throws(SignInError) {
        for _ in 0..<Self.attempts {
            if let sockets = try Self.bound(address) {
                self = sockets
                return
            }
            guard address.port == 0 else { break }
        }
        throw Self.inUse(address)
    }

    private init(descriptors: [Int32], port: UInt16) {
        self.descriptors = descriptors
        self.port = port
    }

    func closeAll() { for descriptor in descriptors { close(descriptor) } }

    /// Nil if one of the addresses has no free port of that number.
    private static func bound(_ address: RedirectAddress) throws(SignInError) -> RedirectSockets? {
        switch address.host {
        case .ipv4:
            return try listening(onIPv6: false, address.port).map { RedirectSockets(descriptors: [$0.0], port: $0.1) }
        case .ipv6:
            return try listening(onIPv6: true, address.port).map { RedirectSockets(descriptors: [$0.0], port: $0.1) }
        case .localhost:
            guard let four = try listening(onIPv6: false, address.port) else { return nil }
            // Where IPv6 is switched off, `localhost` is only the other address.
            guard hasIPv6 else { return RedirectSockets(descriptors: [four.0], port: four.1) }
            guard let six = try listening(onIPv6: true, four.1) else {
                close(four.0)
                return nil
            }
            return RedirectSockets(descriptors: [four.0, six.0], port: four.1)
        }
    }

    private static var hasIPv6: Bool {
        let descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return bind(descriptor, onIPv6: true, 0) == 0
    }

    private static func listening(onIPv6 isSix: Bool, _ port: UInt16) throws(SignInError) -> (Int32, UInt16)? {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(isSix ? AF_INET6 : AF_INET, kind, 0)
        guard descriptor >= 0 else { throw system("cannot create a socket") }
        var one: Int32 = 1
        if isSix { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &one, socklen_t(MemoryLayout<Int32>.size)) }
        // A port that was used a moment ago can be used again; one with a listener cannot.
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, onIPv6: isSix, port) == 0, listen(descriptor, 16) == 0 else {
            let number = errno
            close(descriptor)
            if number == EADDRINUSE { return nil }
            throw system("cannot listen on \(isSix ? "[::1]" : "127.0.0.1"):\(port)", number)
        }
        return (descriptor, boundPort(of: descriptor))
    }

    private static func bind(_ descriptor: Int32, onIPv6 isSix: Bool, _ port: UInt16) -> Int32 {
        if isSix {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = in6addr_loopback
            return bind(descriptor, &address)
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return bind(descriptor, &address)
    }

    private static func bind<Address>(_ descriptor: Int32, _ address: inout Address) -> Int32 {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }

    private static func boundPort(of descriptor: Int32) -> UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
            // The port is at the same place in both kinds of address.
            return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                UInt16(bigEndian: $0.pointee.sin_port)
            }
        }
    }

    private static func system(_ attempt: String, _ number: Int32 = errno) -> SignInError {
        SignInError(.environment, "\(attempt): \(String(cString: strerror(number)))")
    }

    private static func inUse(_ address: RedirectAddress) -> SignInError {
        guard address.port != 0 else { return SignInError(.environment, "no free port on \(address.host.rawValue)") }
        return SignInError(
            .environment, "port \(address.port), to which the profile redirects, is in use",
            hint: "another sign-in may be running; `ss -tlnp sport = :\(address.port)` shows the process")
    }
}
