// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The unencrypted start of a vault: 108 bytes, integers big-endian.
///
///     offset bytes
///          0     4  "CSV1"
///          4     2  version, 1
///          6     1  key derivation: 0 the key file's bytes, 1 scrypt
///          7     1  log2 of scrypt's N, 15 to 20; 0 for a key file
///          8     4  r, 8; 0 for a key file
///         12     4  p, 1 to 4; 0 for a key file
///         16    16  salt; zeros for a key file
///         32    12  nonce of the wrapped data key
///         44    48  the data key in AES-256-GCM under the derived key, with bytes 0 to 43 as additional
///                   authenticated data
///         92    12  nonce of the payload
///        104     4  length of the sealed payload, its tag included
///
/// The payload follows, in AES-256-GCM under the data key, with the whole header as additional authenticated data.
struct VaultHeader: Equatable, Sendable {
    static let bytes = 108
    static let version: UInt16 = 1
    private static let magic = Array("CSV1".utf8)
    private static let wrapBytes = 44

    var derivation: KeyDerivation
    var wrapNonce: [UInt8]
    var wrappedKey: [UInt8]
    var payloadNonce: [UInt8]
    var payloadBytes: UInt32

    /// Whether both contain the same data key, wrapped by the same key.
    func isWrapped(like other: VaultHeader) -> Bool {
        derivation == other.derivation && wrapNonce == other.wrapNonce && wrappedKey == other.wrappedKey
    }

    /// The additional authenticated data of the wrapped key.
    var wrapHeader: [UInt8] { Array(encoded().prefix(Self.wrapBytes)) }

    func encoded() -> [UInt8] {
        var output = Self.magic
        output.append(bigEndian: Self.version)
        switch derivation {
        case .none:
            output += [UInt8](repeating: 0, count: 10 + KeyDerivation.saltBytes)
        case .scrypt(let scrypt, let salt):
            output += [1, scrypt.costExponent]
            output.append(bigEndian: scrypt.blockSize)
            output.append(bigEndian: scrypt.parallelization)
            output += salt
        }
        output += wrapNonce
        output += wrappedKey
        output += payloadNonce
        output.append(bigEndian: payloadBytes)
        return output
    }

    /// The header of `bytes`, a whole vault. Throws `cut` or `altered` if the length is not the one in the header.
    init(of bytes: [UInt8]) throws(VaultError) {
        guard bytes.prefix(4).elementsEqual(Self.magic.prefix(bytes.count)) else {
            throw VaultError(.notAVault, "not a Countersign vault")
        }
        guard bytes.count >= 6 else { throw Self.cut(bytes.count) }
        let version = UInt16(bytes[4]) << 8 | UInt16(bytes[5])
        guard version <= Self.version else {
            throw VaultError(
                .newerVersion, "vault version \(version), this version of Countersign reads version \(Self.version)",
                hint: "use the version of Countersign that wrote it, or a newer one")
        }
        guard version == Self.version else { throw VaultError(.notAVault, "there is no vault version \(version)") }
        guard bytes.count >= Self.bytes else { throw Self.cut(bytes.count) }

        derivation = try Self.derivation(bytes)
        wrapNonce = Array(bytes[32..<44])
        wrappedKey = Array(bytes[44..<92])
        payloadNonce = Array(bytes[92..<104])
        payloadBytes = Self.number(bytes, at: 104)
        let length = Self.bytes + Int(payloadBytes)
        guard bytes.count >= length else { throw Self.cut(bytes.count, of: length) }
        guard bytes.count == length else {
            throw VaultError(.altered, "\(bytes.count - length) extra bytes at the end of the vault")
        }
    }

    init(derivation: KeyDerivation, wrapNonce: [UInt8]) {
        self.derivation = derivation
        self.wrapNonce = wrapNonce
        wrappedKey = []
        payloadNonce = []
        payloadBytes = 0
    }

    private static func cut(_ count: Int, of length: Int = bytes) -> VaultError {
        VaultError(.cut, "the vault is truncated: \(count) of at least \(length) bytes")
    }

    private static func derivation(_ bytes: [UInt8]) throws(VaultError) -> KeyDerivation {
        let (kind, exponent, blockSize, parallelization) = (
            bytes[6], bytes[7], number(bytes, at: 8), number(bytes, at: 12)
        )
        let salt = Array(bytes[16..<32])
        switch kind {
        case 0:
            guard exponent == 0, blockSize == 0, parallelization == 0, salt.allSatisfy({ $0 == 0 }) else {
                throw VaultError(.altered, "the header has scrypt parameters but names a key file")
            }
            return .none
        case 1:
            guard KeyDerivation.costExponents.contains(exponent), blockSize == KeyDerivation.blockSize,
                KeyDerivation.parallelizations.contains(parallelization)
            else {
                throw VaultError(
                    .altered,
                    "scrypt parameters N = 2^\(exponent), r = \(blockSize), p = \(parallelization) are out of range")
            }
            let scrypt = Scrypt(costExponent: exponent, blockSize: blockSize, parallelization: parallelization)
            return .scrypt(scrypt, salt: salt)
        default:
            throw VaultError(.altered, "unknown key derivation \(kind)")
        }
    }

    private static func number(_ bytes: [UInt8], at offset: Int) -> UInt32 {
        bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
