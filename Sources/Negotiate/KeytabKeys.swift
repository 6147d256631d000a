// SPDX-License-Identifier: Apache-2.0

import CountersignCGSSAPI
import CountersignCryptography
import Glibc

/// The keys of one principal, in the form in which the vault stores them. Per key, in big-endian: 4 bytes encryption
/// type, 4 bytes version, 2 bytes length, the key.
package enum KeytabKeys {
    private static let headBytes = 10
    /// Of all keys together; further keys are ignored.
    private static let limitBytes = 16 << 10

    private struct Found {
        var encoded: [UInt8] = []
        var others: Set<String> = []

        mutating func append(_ key: csn_krb5_key) {
            guard let bytes = key.bytes, let length = UInt16(exactly: key.length), length > 0,
                encoded.count + headBytes + Int(length) <= limitBytes
            else { return }
            withUnsafeBytes(of: key.encryptionType.bigEndian) { encoded += $0 }
            withUnsafeBytes(of: key.version.bigEndian) { encoded += $0 }
            withUnsafeBytes(of: length.bigEndian) { encoded += $0 }
            encoded += UnsafeRawBufferPointer(start: bytes, count: Int(length))
        }
    }

    /// Reads the keys of `principal` in the keytab file `path`, of all versions and types. Throws `noLibrary`, or
    /// `keytab` if the file cannot be read or has no such key. Reads a file: call it off the event loops.
    package static func read(_ path: String, of principal: String) throws(KerberosError) -> Secret {
        guard csn_gss_is_available() == 1 else { throw .noLibrary }
        var found = Found()
        // Growing would leave a copy behind.
        found.encoded.reserveCapacity(limitBytes)
        defer { found.encoded.wipe() }
        let code = withUnsafeMutablePointer(to: &found) { found in
            csn_krb5_read_keytab(path, principal, found) { data, name, isWanted, key in
                guard let found = data?.assumingMemoryBound(to: Found.self), let name else { return }
                if isWanted == 0 {
                    found.pointee.others.insert(String(cString: name))
                } else {
                    found.pointee.append(key)
                }
            }
        }
        guard code == 0 else {
            let reason = access(path, R_OK) == 0 ? "it is not a keytab" : String(cString: strerror(errno))
            throw KerberosError(.keytab, "\(path.debugDescription) cannot be read: \(reason)")
        }
        guard !found.encoded.isEmpty else {
            let others = found.others.sorted().prefix(5).joined(separator: ", ")
            throw KerberosError(
                .keytab, "\(path.debugDescription) has no key of \(principal)",
                hint: others.isEmpty ? "it is empty" : "it has keys of \(others)")
        }
        return Secret(wiping: &found.encoded)
    }

    /// Calls `body` with the keys in `secret`; nil if they are not encoded as above.
    package static func with<Value>(_ secret: Secret, _ body: ([csn_krb5_key]) -> Value) -> Value? {
        secret.withBytes { bytes in
            guard let start = bytes.baseAddress else { return nil }
            func number(_ offset: Int, _ count: Int) -> UInt32 {
                bytes[offset..<offset + count].reduce(0) { $0 << 8 | UInt32($1) }
            }
            var keys: [csn_krb5_key] = []
            var offset = 0
            while offset < bytes.count {
                guard bytes.count - offset >= headBytes else { return nil }
                let length = Int(number(offset + 8, 2))
                guard length > 0, bytes.count - offset - headBytes >= length else { return nil }
                keys.append(
                    csn_krb5_key(
                        encryptionType: Int32(bitPattern: number(offset, 4)), version: number(offset + 4, 4),
                        bytes: start + offset + headBytes, length: length))
                offset += headBytes + length
            }
            return keys.isEmpty ? nil : body(keys)
        }
    }
}
