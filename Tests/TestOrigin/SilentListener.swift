// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Receives messages on one port of UDP and TCP on 127.0.0.1, and never answers.
package final class SilentListener: Sendable {
    package let port: Int
    private let sockets: [Int32]

    package init() throws {
        for _ in 0..<20 {
            let number = try Loopback.freePorts(1)[0]
            let pair = [Loopback.datagramType, Loopback.streamType].map { Self.bound($0, port: number) }
            if pair.allSatisfy({ $0 >= 0 }), listen(pair[1], 16) == 0 {
                port = number
                sockets = pair
                return
            }
            for socket in pair where socket >= 0 { close(socket) }
        }
        throw HarnessError("no port is free")
    }

    private static func bound(_ type: Int32, port: Int) -> Int32 {
        let descriptor = socket(AF_INET, type, 0)
        var address = Loopback.address(port: port)
        let done = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard done == 0 else {
            close(descriptor)
            return -1
        }
        return descriptor
    }

    deinit { for socket in sockets { close(socket) } }

    /// Whether a message or a connection arrives within 30 seconds.
    package func waitForMessage() -> Bool {
        var waiting = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        return Foundation.poll(&waiting, nfds_t(waiting.count), 30_000) > 0
    }
}
