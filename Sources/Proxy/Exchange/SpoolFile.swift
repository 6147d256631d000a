// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignCryptography
import Glibc
import NIOCore

/// A file without a name that holds a request's content in encrypted records of equal size.
///
/// The file has no name (`O_TMPFILE`, open(2)), so it disappears with the process, however that ends. Each file has a
/// random key of its own, in locked memory, so that the content cannot be read from the disk afterwards. A record is
/// written once, and its number is its nonce.
///
/// Unchecked: one serial queue uses it, that of its ``ContentSpool``. Every call may block.
final class SpoolFile: @unchecked Sendable {
    /// Of plaintext.
    static let recordBytes = 256 << 10

    struct Failure: Error {
        let reason: String
    }

    private let folders: [String]
    // Most uploads of unknown length are short, and never write a record.
    private lazy var key = Randomness.secret(AESGCM.keyBytes)
    private var descriptor: Int32 = -1
    private lazy var sealed = [UInt8](repeating: 0, count: SpoolFile.recordBytes + AESGCM.tagBytes)

    /// The file is made in the first of `folders` in which it can be.
    init(folders: [String]) { self.folders = folders }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Writes ``recordBytes`` bytes of content.
    func write(_ pieces: [ByteBuffer], asRecord number: Int) throws(Failure) {
        try openIfNeeded()
        var plaintext = ByteBufferAllocator().buffer(capacity: Self.recordBytes)
        for piece in pieces { plaintext.writeImmutableBuffer(piece) }
        let failure: CryptographyError? = sealed.withUnsafeMutableBytes { sealed in
            plaintext.withUnsafeReadableBytes { plaintext in
                do throws(CryptographyError) {
                    try AESGCM.seal(plaintext, into: sealed, key: key, nonce: Self.nonce(number))
                    return nil
                } catch {
                    return error
                }
            }
        }
        if let failure { throw Failure(reason: failure.detail) }
        try transfer(number) { pwrite(descriptor, $0, $1, $2) }
    }

    /// The content of a record.
    func read(record number: Int) throws(Failure) -> ByteBuffer {
        try transfer(number) { pread(descriptor, $0, $1, $2) }
        var plaintext = ByteBufferAllocator().buffer(capacity: Self.recordBytes)
        var failure: CryptographyError?
        plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.recordBytes) { space in
            let space = UnsafeMutableRawBufferPointer(rebasing: space[..<Self.recordBytes])
            sealed.withUnsafeBytes { sealed in
                do throws(CryptographyError) {
                    try AESGCM.open(sealed, into: space, key: key, nonce: Self.nonce(number))
                } catch {
                    failure = error
                }
            }
            return Self.recordBytes
        }
        if let failure { throw Failure(reason: failure.detail) }
        return plaintext
    }

    /// Moves all of ``sealed`` to or from the record's place.
    private func transfer(
        _ number: Int, _ move: (UnsafeMutableRawPointer, Int, off_t) -> Int
    ) throws(Failure) {
        let size = sealed.count
        var reason: Int32?
        sealed.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            var done = 0
            while done < size {
                let count = move(start + done, size - done, off_t(number * size + done))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    reason = count < 0 ? errno : EIO
                    return
                }
                done += count
            }
        }
        if let reason { throw Failure(reason: String(cString: strerror(reason))) }
    }

    private func openIfNeeded() throws(Failure) {
        guard descriptor < 0 else { return }
        var reason = ENOENT
        for folder in folders {
            descriptor = csn_open_unnamed(folder)
            if descriptor >= 0 { return }
            reason = errno
            // Not every file system has files without a name.
            if reason == EOPNOTSUPP || reason == EISDIR {
                var path = Array("\(folder)/countersign-XXXXXX".utf8CString)
                descriptor = csn_open_temporary(&path)
                if descriptor >= 0 {
                    unlink(path)
                    return
                }
                reason = errno
            }
        }
        throw Failure(reason: String(cString: strerror(reason)))
    }

    /// 12 bytes: the number of the record, big-endian.
    private static func nonce(_ number: Int) -> [UInt8] {
        [0, 0, 0, 0] + withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    }
}
