// SPDX-License-Identifier: Apache-2.0

import CountersignPAC
package import CountersignParents
import Dispatch
import Glibc

/// The look-ups that scripts ask for, by the system's resolver, on threads that may block.
package enum HostLookUps {
    private static let queue = DispatchQueue(label: "countersign.look-ups", attributes: .concurrent)

    static let resolve: PACEvaluator.Resolver = { lookUp, done in
        queue.async {
            switch lookUp {
            case .name(let name): done(addresses(of: name))
            case .ownAddresses: done(ownAddresses())
            }
        }
    }

    static func blocking<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }

    /// Whether the parent accepts a TCP connection within five seconds.
    package static let accepts: @Sendable (ParentProxy) async -> Bool = { parent in
        await blocking { accepts(parent.host.text, parent.port, milliseconds: 5000) }
    }

    private static func accepts(_ host: String, _ port: UInt16, milliseconds: Int32) -> Bool {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &list) == 0 else { return false }
        defer { freeaddrinfo(list) }
        var next = list
        while let entry = next?.pointee {
            next = entry.ai_next
            let flags = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let descriptor = socket(entry.ai_family, flags, 0)
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            if connect(descriptor, entry.ai_addr, entry.ai_addrlen) == 0 { return true }
            var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard errno == EINPROGRESS, poll(&waiting, 1, milliseconds) == 1 else { continue }
            var reason: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &reason, &length) == 0, reason == 0 { return true }
        }
        return false
    }

    /// None for a name with a NUL: the system's resolver would see another name, the part before it.
    private static func addresses(of name: String) -> [String] {
        guard !name.utf8.contains(0) else { return [] }
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [String] = []
        var next = list
        while let entry = next?.pointee {
            if let address = entry.ai_addr, let text = text(address, entry.ai_addrlen), !found.contains(text) {
                found.append(text)
            }
            next = entry.ai_next
        }
        return found
    }

    /// Without loopback and link-local addresses. Those from which the machine reaches the Internet are first, as in
    /// browsers: scripts ask for the first one.
    static func ownAddresses() -> [String] {
        let all = interfaceAddresses()
        let preferred = ["192.0.2.1", "2001:db8::1"].compactMap(sourceAddress).filter(all.contains)
        return preferred + all.filter { !preferred.contains($0) }
    }

    /// The address from which the machine would reach `address`. Connecting a UDP socket sends nothing.
    private static func sourceAddress(to address: String) -> String? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        hints.ai_flags = AI_NUMERICHOST
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, "53", &hints, &list) == 0, let entry = list?.pointee else { return nil }
        defer { freeaddrinfo(list) }
        let descriptor = socket(entry.ai_family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var own = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        guard connect(descriptor, entry.ai_addr, entry.ai_addrlen) == 0 else { return nil }
        return withUnsafeMutablePointer(to: &own) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(descriptor, address, &length) == 0 ? text(address, length) : nil
            }
        }
    }

    private static func interfaceAddresses() -> [String] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [String] = []
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0, entry.ifa_flags & UInt32(IFF_UP) != 0,
                let address = entry.ifa_addr
            else { continue }
            let length: Int
            switch Int32(address.pointee.sa_family) {
            case AF_INET: length = MemoryLayout<sockaddr_in>.size
            case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
            default: continue
            }
            guard let text = text(address, socklen_t(length)), !text.hasPrefix("169.254."), !text.hasPrefix("fe80:")
            else { continue }
            found.append(text)
        }
        return found
    }

    private static func text(_ address: UnsafeMutablePointer<sockaddr>, _ length: socklen_t) -> String? {
        var host = [CChar](repeating: 0, count: 1025)
        guard getnameinfo(address, length, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) == 0
        else { return nil }
        let text = String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.contains("%") ? nil : text
    }
}
