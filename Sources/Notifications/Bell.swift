// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import Glibc

/// Wakes a thread that waits for descriptors.
final class Bell: Sendable {
    private let read: Int32
    private let write: Int32

    /// Nil if there are no descriptors left.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard csn_pipe2(&ends) == 0 else { return nil }
        (read, write) = (ends[0], ends[1])
    }

    deinit {
        close(read)
        close(write)
    }

    /// A full pipe rings already.
    func ring() {
        var byte: UInt8 = 0
        _ = Glibc.write(write, &byte, 1)
    }

    /// Waits until somebody rings, or `descriptor` can be read, or the time is over; -1 milliseconds: without end. A
    /// negative descriptor is not waited for. Returns what happened at the descriptor, as poll(2) does.
    func wait(_ descriptor: Int32, milliseconds: Int32) -> Int16 {
        var waited = [
            pollfd(fd: read, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&waited, 2, milliseconds) > 0 else { return 0 }
        if waited[0].revents != 0 {
            var bytes = [UInt8](repeating: 0, count: 64)
            while Glibc.read(read, &bytes, bytes.count) > 0 {}
        }
        return waited[1].revents
    }
}
