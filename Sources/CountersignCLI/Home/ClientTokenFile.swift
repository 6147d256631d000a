// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import Glibc

/// The file whose first line is the token that clients must send.
struct ClientTokenFile {
    let path: String

    /// Reads the token: at least 16 characters from `A-Z a-z 0-9 _ -`, which need no escaping in a URL.
    func read() throws -> Secret {
        var found = stat()
        guard stat(path, &found) == 0 else {
            throw CountersignError(
                .environment, "cannot read the client token file \(path): \(String(cString: strerror(errno)))",
                hint: "create it: (umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '-_' > \(path))")
        }
        guard found.st_mode & 0o077 == 0 else {
            throw CountersignError(
                .configuration, "other users can read the client token file \(path)", hint: "chmod 600 \(path)")
        }
        var bytes = try HomeFile(path: path).read(upTo: 4096)
        defer { bytes.wipe() }
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        let isGood = line.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
        guard isGood, line.count >= 16 else {
            throw CountersignError(
                .configuration, "the first line of the client token file \(path) is not a token",
                hint: "a token has at least 16 characters from A-Z a-z 0-9 _ -")
        }
        return Secret(line)
    }
}
