// SPDX-License-Identifier: Apache-2.0

/// The process at the other end of a client connection, according to the kernel.
package struct ClientProcess: Equatable, Sendable {
    package var uid: UInt32?
    package var pid: Int32?
    /// The inode of its TCP socket, by which ``pid`` can be found.
    package var socketInode: UInt32?

    package init(uid: UInt32? = nil, pid: Int32? = nil, socketInode: UInt32? = nil) {
        self.uid = uid
        self.pid = pid
        self.socketInode = socketInode
    }
}

/// `struct ucred` (unix(7)), the value of SO_PEERCRED.
struct PeerCredentials: Sendable {
    var pid: Int32 = 0
    var uid: UInt32 = 0
    var gid: UInt32 = 0
}
