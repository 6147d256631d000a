// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A socket of the file system whose queue is full: another connection blocks for as long as this value exists.
package final class FullSocket: Sendable {
    /// As the address of a D-Bus bus.
    package var address: String { "unix:path=\(folder.file("socket"))" }
    private let folder: TemporaryFolder
    private let sockets: [Int32]

    package init() throws {
        folder = try TemporaryFolder("full")
        let listener = socket(AF_UNIX, Loopback.streamType, 0)
        guard Loopback.bind(listener, path: folder.file("socket")), listen(listener, 0) == 0 else {
            throw HarnessError("a socket cannot listen")
        }
        // With a queue of this length, one connection fits.
        sockets = [listener, try Loopback.connect(path: folder.file("socket"))]
    }

    deinit { for socket in sockets { close(socket) } }
}
