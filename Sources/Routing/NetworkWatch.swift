// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// Notices that this machine's addresses or default routes have changed: the kernel reports every change of an address
/// or a route (rtnetlink(7)), and those that leave both the same are skipped, such as a renewed lifetime.
///
/// Unchecked because of the source, whose methods any thread may call.
final class NetworkWatch: @unchecked Sendable {
    private let source: any DispatchSourceRead
    private let queue = DispatchQueue(label: "countersign.network")
    private let isStopped = Atomic(false)

    /// How long the kernel's reports are collected: a change of the network makes several.
    private static let quiet = DispatchTimeInterval.milliseconds(500)

    /// Nil if the kernel does not report changes to this process. `changed` is called on a queue of the watch.
    /// `snapshot` distinguishes networks.
    init?(
        snapshot: @escaping @Sendable () -> [String] = NetworkWatch.snapshot, changed: @escaping @Sendable () -> Void
    ) {
        let descriptor = Self.openSocket()
        guard descriptor >= 0 else { return nil }
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        let state = State(snapshot())
        source.setEventHandler { [queue] in
            var room = [UInt8](repeating: 0, count: 8192)
            while recv(descriptor, &room, room.count, Int32(MSG_DONTWAIT)) > 0 || errno == ENOBUFS {}
            guard state.beginWaiting() else { return }
            queue.asyncAfter(deadline: .now() + Self.quiet) {
                if state.endWaiting(with: snapshot()) { changed() }
            }
        }
        source.setCancelHandler { close(descriptor) }
        source.resume()
    }

    /// A socket from which the kernel's reports are read without blocking; -1 without one. The Glibc module leaves out
    /// <linux/rtnetlink.h>.
    private static func openSocket() -> Int32 {
        struct Address {
            var family = sa_family_t(AF_NETLINK)
            var padding: UInt16 = 0
            /// 0: the kernel chooses.
            var port: UInt32 = 0
            /// RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR and RTMGRP_IPV6_ROUTE.
            var groups: UInt32 = 0x10 | 0x40 | 0x100 | 0x400
        }
        let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_NETLINK, type, 0)
        guard descriptor >= 0 else { return -1 }
        var address = Address()
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        if bound == 0 { return descriptor }
        close(descriptor)
        return -1
    }

    func stop() {
        if !isStopped.exchange(true, ordering: .relaxed) { source.cancel() }
    }

    deinit { stop() }

    private final class State: Sendable {
        private let values: Mutex<(last: [String], isWaiting: Bool)>

        init(_ last: [String]) { values = Mutex((last, false)) }

        /// False if it is waiting already.
        func beginWaiting() -> Bool {
            values.withLock { values in
                defer { values.isWaiting = true }
                return !values.isWaiting
            }
        }

        /// Whether the network is another one now.
        func endWaiting(with snapshot: [String]) -> Bool {
            values.withLock { values in
                values.isWaiting = false
                defer { values.last = snapshot }
                return values.last != snapshot
            }
        }
    }

    /// The addresses of this machine, and the default routes without their counters.
    static let snapshot: @Sendable () -> [String] = {
        var lines = HostLookUps.ownAddresses()
        for line in text(of: "/proc/net/route").split(separator: "\n") {
            let words = line.split { $0 == "\t" || $0 == " " }
            if words.count > 2, words[1] == "00000000" { lines.append("\(words[0]) \(words[2])") }
        }
        for line in text(of: "/proc/net/ipv6_route").split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count > 9, words[1] == "00", words[9] != "lo" { lines.append("\(words[9]) \(words[4])") }
        }
        return lines.sorted()
    }

    private static func text(of path: String) -> String {
        guard let file = fopen(path, "re") else { return "" }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 8192)
        while case let count = fread(&room, 1, room.count, file), count > 0, bytes.count < 1 << 20 {
            bytes += room[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
