// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// A server on a free port of 127.0.0.1 that accepts connections and never responds.
final class SilentOrigin {
    private let descriptor: Int32
    let port: Int

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        self.descriptor = descriptor
        let listens = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                bind(descriptor, raw, length) == 0 && listen(descriptor, 4) == 0
                    && getsockname(descriptor, raw, &length) == 0
            }
        }
        guard listens else { throw HarnessError("no free port on 127.0.0.1") }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }

    /// Whether a client connects within ten seconds.
    func waitForClient() -> Bool {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return Foundation.poll(&ready, 1, 10_000) == 1
    }

    /// The next connection, which is here already.
    func accepted() -> Connection? {
        let number = accept(descriptor, nil, nil)
        return number < 0 ? nil : Connection(descriptor: number)
    }

    final class Connection {
        private let descriptor: Int32

        init(descriptor: Int32) { self.descriptor = descriptor }

        deinit { close(descriptor) }

        /// Whether the client closes the connection in time.
        func waitForEnd(seconds: Int) -> Bool {
            var timeout = timeval(tv_sec: seconds, tv_usec: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
            var bytes = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = recv(descriptor, &bytes, bytes.count, 0)
                if count <= 0 { return count == 0 || errno == ECONNRESET }
            }
        }
    }
}
