// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Glibc

/// The names that this machine's administrator has given to addresses (hosts(5)).
struct HostsFile {
    let path: String

    static let system = HostsFile(path: "/etc/hosts")

    /// Whether a line gives `host` an address of this machine. Blocks.
    func leadsHere(_ host: String) -> Bool {
        guard let file = fopen(path, "re") else { return false }
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer { free(line) }
        while case let count = getline(&line, &room, file), count > 0, let line {
            let text = String(decoding: UnsafeRawBufferPointer(start: line, count: count), as: UTF8.self)
            let words = text.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            guard words.count > 1, words.dropFirst().contains(where: { $0.lowercased() == host }) else { continue }
            if IPAddress(String(words[0]))?.isLocal == true { return true }
        }
        return false
    }
}
