// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The clear part of a vault file: 108 bytes, integers big-endian.
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
///         44    48  the data key in AES-256-GCM under the derived key; bytes 0 to 43 are authenticated with it
///         92    12  nonce of the payload
///        104     4  length of the sealed payload, its tag included
///
/// The payload, in AES-256-GCM under the data key, authenticates the whole header.
struct VaultHeader: Equatable, Sendable {
    static let bytes = 108
    static let version: UInt16 = 1
    static let wrappedKeyBytes = 48
    private static let magic = Array("CSV1".utf8)
    private static let wrapBytes = 44

    var derivation: KeyDerivation
    var wrapNonce: [UInt8]
    var wrappedKey: [UInt8]
    var payloadNonce: [UInt8]
    var payloadBytes: UInt32

    /// Whether the same data key, wrapped by the same key, stands in both.
    func isWrapped(like other: VaultHeader) -> Bool {
        derivation == other.derivation && wrapNonce == other.wrapNonce && wrappedKey == other.wrappedKey
    }

    /// What the wrapped key authenticates.
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

    /// The header of `file`, a whole vault file. Refuses any other length of the file than the header says.
    init(of file: [UInt8]) throws(VaultError) {
        guard file.prefix(4).elementsEqual(Self.magic.prefix(file.count)) else {
            throw VaultError(.notAVault, "not a Countersign vault")
        }
        guard file.count >= 6 else { throw Self.cut(file.count) }
        let version = UInt16(file[4]) << 8 | UInt16(file[5])
        guard version <= Self.version else {
            throw VaultError(
                .newerVersion, "vault version \(version), this Countersign reads \(Self.version)",
                hint: "use the Countersign that wrote it, or a later one")
        }
        guard version == Self.version else { throw VaultError(.notAVault, "there is no vault version \(version)") }
        guard file.count >= Self.bytes else { throw Self.cut(file.count) }

        derivation = try Self.derivation(file)
        wrapNonce = Array(file[32..<44])
        wrappedKey = Array(file[44..<92])
        payloadNonce = Array(file[92..<104])
        payloadBytes = Self.number(file, at: 104)
        let length = Self.bytes + Int(payloadBytes)
        guard file.count >= length else { throw Self.cut(file.count, of: length) }
        guard file.count == length else {
            throw VaultError(.altered, "\(file.count - length) bytes too many behind the vault", hint: Self.restore)
        }
    }

    init(derivation: KeyDerivation, wrapNonce: [UInt8]) {
        self.derivation = derivation
        self.wrapNonce = wrapNonce
        wrappedKey = []
        payloadNonce = []
        payloadBytes = 0
    }

    static let restore = "the last version is kept as \"vault.bak\""

    private static func cut(_ count: Int, of length: Int = bytes) -> VaultError {
        VaultError(.cut, "the vault was cut: \(count) of at least \(length) bytes", hint: restore)
    }

    private static func derivation(_ file: [UInt8]) throws(VaultError) -> KeyDerivation {
        let (kind, exponent, blockSize, parallelization) = (file[6], file[7], number(file, at: 8), number(file, at: 12))
        let salt = Array(file[16..<32])
        switch kind {
        case 0:
            guard exponent == 0, blockSize == 0, parallelization == 0, salt.allSatisfy({ $0 == 0 }) else {
                throw VaultError(.altered, "the header has scrypt parameters and names a key file", hint: restore)
            }
            return .none
        case 1:
            guard KeyDerivation.costExponents.contains(exponent), blockSize == KeyDerivation.blockSize,
                KeyDerivation.parallelizations.contains(parallelization)
            else {
                throw VaultError(
                    .altered,
                    "scrypt with N = 2^\(exponent), r = \(blockSize), p = \(parallelization) is out of bounds",
                    hint: restore)
            }
            let scrypt = Scrypt(costExponent: exponent, blockSize: blockSize, parallelization: parallelization)
            return .scrypt(scrypt, salt: salt)
        default:
            throw VaultError(.altered, "key derivation \(kind) is not one of version \(version)", hint: restore)
        }
    }

    private static func number(_ file: [UInt8], at offset: Int) -> UInt32 {
        file[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}

extension [UInt8] {
    fileprivate mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
