// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// Lines of a file with audit records.
package enum AuditReading {
    private static let chunkBytes = 256 * 1024

    /// Hands each line of the file at `path`, without its line feed, to `body`; `isTerminated` is false for a last line
    /// without one. A line that is longer than a record can be comes in parts. Ends when `body` returns false.
    package static func lines(
        of path: String, _ body: (_ line: [UInt8], _ isTerminated: Bool) -> Bool
    ) throws(AuditError) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard file >= 0 else { throw failure(path) }
        defer { close(file) }
        try lines(of: file, path, from: 0, body)
    }

    /// The same from `offset` on. The place in the file that the descriptor has is neither used nor changed, if it is a
    /// regular file.
    static func lines(
        of file: Int32, _ path: String, from offset: off_t, _ body: ([UInt8], Bool) -> Bool
    ) throws(AuditError) {
        var rest: [UInt8] = []
        var offset = offset
        while true {
            let chunk = try chunk(of: file, path, at: offset)
            guard !chunk.isEmpty else { break }
            offset += off_t(chunk.count)
            var start = 0
            while let end = chunk[start...].firstIndex(of: UInt8(ascii: "\n")) {
                guard body(rest + chunk[start..<end], true) else { return }
                rest = []
                start = end + 1
            }
            rest += chunk[start...]
            guard rest.count <= 2 * AuditRecord.longestLineBytes else {
                guard body(rest, true) else { return }
                rest = []
                continue
            }
        }
        if !rest.isEmpty { _ = body(rest, false) }
    }

    private static func chunk(of file: Int32, _ path: String, at offset: off_t) throws(AuditError) -> [UInt8] {
        while true {
            var count = 0
            var reason: Int32 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: chunkBytes) { buffer, filled in
                count = pread(file, buffer.baseAddress, buffer.count, offset)
                // A pipe has no places.
                if count < 0, errno == ESPIPE { count = Glibc.read(file, buffer.baseAddress, buffer.count) }
                reason = errno
                filled = max(0, count)
            }
            if count >= 0 { return bytes }
            guard reason == EINTR else { throw failure(path, reason) }
        }
    }

    private static func failure(_ path: String, _ reason: Int32 = errno) -> AuditError {
        AuditError(
            .environment, "cannot read the audit \(AuditError.quoted(path)): \(String(cString: strerror(reason)))",
            hint: "name the file of `countersign serve --audit FILE`")
    }
}
