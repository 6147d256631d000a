// SPDX-License-Identifier: Apache-2.0

package import CountersignRevocation
import Glibc

/// The OCSP responses and revocation lists that were fetched, in the home's folder `revocation` (mode 0700, files
/// 0600). They are public and signed, and each can be fetched again: the folder may be removed at any time. If it
/// cannot be written, they are kept in memory only.
package struct RevocationFolder: Sendable {
    static let name = "revocation"
    /// The largest number of files.
    static let fileLimit = 512
    /// The largest sum of the files' sizes, in bytes.
    static let limitBytes: Int64 = 128 << 20
    /// The longest file: the longest list and the line before it.
    private static let fileLimitBytes = (20 << 20) + 4096

    private let home: Home

    package init(home: Home) {
        self.home = home
    }

    package var storage: RevocationStorage {
        RevocationStorage(
            read: { name in try? file(name).readIfThere(upTo: Self.fileLimitBytes) },
            write: { name, bytes in
                // A home that does not exist is not created for this.
                guard (try? home.exists()) == true, (try? HomeFile.makeFolder(path, mode: 0o700)) != nil else { return }
                try? file(name).replace(with: bytes, mode: 0o600, isDurable: false)
                removeOldest()
            })
    }

    private var path: String { "\(home.path)/\(Self.name)" }

    private func file(_ name: String) -> HomeFile { home.file("\(Self.name)/\(name)") }

    /// Removes the files that were written first until the limits are met.
    private func removeOldest() {
        guard let names = try? home.files(in: Self.name, suffix: "") else { return }
        var found: [(path: String, written: Int, size: Int64)] = []
        for file in names {
            var status = stat()
            guard lstat(file.path, &status) == 0 else { continue }
            found.append((file.path, status.st_mtim.tv_sec, Int64(status.st_size)))
        }
        found.sort { $0.written > $1.written }
        var total: Int64 = 0
        for (index, file) in found.enumerated() {
            total += file.size
            if index >= Self.fileLimit || total > Self.limitBytes { unlink(file.path) }
        }
    }
}
