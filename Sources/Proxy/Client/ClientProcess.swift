// SPDX-License-Identifier: Apache-2.0

/// The process at the other end of a client connection, according to the kernel.
package struct ClientProcess: Equatable, Sendable {
    package var uid: UInt32?
    package var pid: Int32?

    package init(uid: UInt32? = nil, pid: Int32? = nil) {
        self.uid = uid
        self.pid = pid
    }
}

/// `struct ucred` (unix(7)), the value of SO_PEERCRED.
struct PeerCredentials: Sendable {
    var pid: Int32 = 0
    var uid: UInt32 = 0
    var gid: UInt32 = 0
}
