// SPDX-License-Identifier: Apache-2.0

/// The ASN.1 types that SPNEGO needs, in DER (X.690 §10): definite and shortest lengths, one-byte tags, no trailing
/// bytes.
enum DER {
    static let enumerated: UInt8 = 0x0A
    static let objectIdentifier: UInt8 = 0x06
    static let octetString: UInt8 = 0x04
    static let sequence: UInt8 = 0x30
    /// `[APPLICATION 0]`, the envelope of a GSS-API initial token (RFC 2743 §3.1).
    static let initialContextToken: UInt8 = 0x60

    /// A constructed, context-specific tag.
    static func context(_ number: UInt8) -> UInt8 {
        0xA0 | number
    }

    /// Encodes one value with its tag and length.
    static func encode(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        guard count > 127 else { return [tag, UInt8(count)] + content }
        var length: [UInt8] = []
        var rest = count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag, 0x80 | UInt8(length.count)] + length + content
    }

    /// A strict reader, which consumes values from the front of `bytes`.
    struct Reader {
        private var bytes: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) {
            self.bytes = bytes
        }

        /// The next value's tag, or nil at the end.
        var nextTag: UInt8? {
            bytes.first
        }

        /// The content of the next value, which must have `tag`.
        mutating func take(_ tag: UInt8, named name: String) throws(SPNEGOError) -> ArraySlice<UInt8> {
            guard let found = bytes.popFirst(), found == tag else {
                throw SPNEGOError(.malformed, "SPNEGO: \(name) is missing")
            }
            let length = try takeLength(of: name)
            guard length <= bytes.count else {
                throw SPNEGOError(.malformed, "SPNEGO: \(name) of \(length) bytes overruns the token")
            }
            defer { bytes = bytes.dropFirst(length) }
            return bytes.prefix(length)
        }

        /// The content of the next value if it has `tag`, otherwise nil.
        mutating func takeOptional(_ tag: UInt8, named name: String) throws(SPNEGOError) -> ArraySlice<UInt8>? {
            nextTag == tag ? try take(tag, named: name) : nil
        }

        /// The content of a value with `tag`, if the next value has the tag `wrapper` and contains nothing else.
        mutating func takeOptional(
            _ tag: UInt8, inside wrapper: UInt8, named name: String
        ) throws(SPNEGOError) -> ArraySlice<UInt8>? {
            guard let content = try takeOptional(wrapper, named: name) else { return nil }
            var inner = Reader(content)
            let value = try inner.take(tag, named: name)
            try inner.finish(name)
            return value
        }

        /// Throws `malformed` if there are trailing bytes.
        func finish(_ name: String) throws(SPNEGOError) {
            guard bytes.isEmpty else {
                throw SPNEGOError(.malformed, "SPNEGO: \(bytes.count) bytes behind the end of \(name)")
            }
        }

        /// The length has at most three bytes, which is enough because a token is not much longer than 64 KiB.
        private mutating func takeLength(of name: String) throws(SPNEGOError) -> Int {
            guard let first = bytes.popFirst() else {
                throw SPNEGOError(.malformed, "SPNEGO: \(name) has no length")
            }
            guard first >= 0x80 else { return Int(first) }
            let count = Int(first & 0x7F)
            guard (1...3).contains(count), count <= bytes.count else {
                throw SPNEGOError(.malformed, "SPNEGO: \(name) has a length of \(count) bytes")
            }
            let length = bytes.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            guard bytes.first != 0, length > 127 else {
                throw SPNEGOError(.malformed, "SPNEGO: the length of \(name) is not the shortest form")
            }
            bytes = bytes.dropFirst(count)
            return length
        }
    }
}

/// The object identifiers of SPNEGO and its mechanisms, as DER contents.
package enum MechanismOID {
    /// 1.3.6.1.5.5.2 (RFC 4178 §3).
    static let spnego: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x02]
    /// 1.2.840.113554.1.2.2 (RFC 4121 §4.1).
    package static let kerberos: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x02]
    /// 1.2.840.48018.1.2.2: Kerberos, as Windows 2000 writes it (MS-SPNG §1.9).
    package static let kerberosOfWindows2000: [UInt8] = [0x2A, 0x86, 0x48, 0x82, 0xF7, 0x12, 0x01, 0x02, 0x02]
    /// 1.3.6.1.4.1.311.2.2.10 (MS-SPNG §1.9).
    package static let ntlm: [UInt8] = [0x2B, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0A]
}
