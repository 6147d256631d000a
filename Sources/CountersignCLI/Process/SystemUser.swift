// SPDX-License-Identifier: Apache-2.0

import CountersignProxy
import FoundationEssentials
import Glibc

/// The user that runs this process.
enum SystemUser {
    /// The name from the user database, else `$USER`, else empty. For a set-user-ID root process, the calling user.
    static var name: String {
        SystemUsers.name(of: geteuid() == 0 ? getuid() : geteuid())
            ?? ProcessInfo.processInfo.environment["USER"] ?? ""
    }
}
