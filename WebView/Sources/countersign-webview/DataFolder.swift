// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc

/// The folder of a session that is kept. WebKit writes files there that the umask alone does not protect.
enum DataFolder {
    /// Creates the folder. Returns false if it is not this user's alone.
    static func make(_ path: String) -> Bool {
        g_mkdir_with_parents(path, 0o700)
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
            && status.st_mode & 0o077 == 0
    }
}
