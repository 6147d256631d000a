// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The identities and versions of the home's files except the vault, which a `VaultWatch` observes. The value changes
/// whenever a file is written, added or removed.
package struct HomeStamp: Equatable, Sendable {
    private struct FileStamp: Equatable, Sendable {
        let inode: UInt64
        let sizeBytes: Int64
        let seconds: Int
        let nanoseconds: Int
    }

    private let files: [String: FileStamp]

    package init(_ home: Home) {
        let folders = [
            (Home.sitesFolder, ".sites"), (Home.anchorsFolder, ".pem"), (Home.identitiesFolder, ".pem"),
        ]
        var paths = [home.pauseMark.path]
        for (folder, suffix) in folders {
            // An unreadable folder counts as empty here; reading its files reports the error.
            paths += ((try? home.files(in: folder, suffix: suffix)) ?? []).map(\.path)
            paths += ((try? home.ignoredFiles(in: folder, suffix: suffix)) ?? []).map(\.path)
        }
        var files: [String: FileStamp] = [:]
        for path in paths {
            var found = stat()
            guard stat(path, &found) == 0 else { continue }
            files[path] = FileStamp(
                inode: UInt64(found.st_ino), sizeBytes: Int64(found.st_size), seconds: found.st_mtim.tv_sec,
                nanoseconds: found.st_mtim.tv_nsec)
        }
        self.files = files
    }
}
