// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The kind of key that opens a vault, which the vault's header names.
package enum VaultKey: String, Equatable, Sendable {
    /// The random key that is stored beside the vault: in a home, `vault.key`.
    case file
    case passphrase
}

/// The key that is to open a vault from now on.
package enum NewVaultKey: Sendable {
    /// A new random key, stored beside the vault.
    case file
    case passphrase(Secret)
}

/// How the key that wraps the data key is derived.
enum KeyDerivation: Equatable, Sendable {
    /// The key is the 32 bytes of the key file.
    case none
    /// scrypt of the passphrase (RFC 7914), with a salt of 16 bytes.
    case scrypt(Scrypt, salt: [UInt8])

    static let saltBytes = 16
    static let costExponents: ClosedRange<UInt8> = 15...20
    static let blockSize: UInt32 = 8
    static let parallelizations: ClosedRange<UInt32> = 1...4
    /// 128 MiB and about a second.
    static let standard = Scrypt(costExponent: 17, blockSize: 8, parallelization: 1)

    var key: VaultKey {
        switch self {
        case .none: .file
        case .scrypt: .passphrase
        }
    }
}

/// The text of a stored key: comment lines, then a line of 64 hexadecimal digits per key. There are two keys while the
/// vault is being rekeyed, so that a crash leaves no vault without its key.
enum KeyFileText {
    static let keyBytes = 32
    static let maximumKeys = 2

    private static let comment =
        "# This key opens the Countersign vault beside it. Keep it private, and keep it: nothing else opens the vault.\n"

    static func encode(_ keys: [Secret]) -> Secret {
        let digits = Array("0123456789abcdef".utf8)
        let lineBytes = keyBytes * 2 + 1
        return Secret(count: comment.utf8.count + keys.count * lineBytes) { output in
            var offset = 0
            func append(_ byte: UInt8) {
                output[offset] = byte
                offset += 1
            }
            for byte in comment.utf8 { append(byte) }
            for key in keys {
                key.withBytes { bytes in
                    for byte in bytes {
                        append(digits[Int(byte >> 4)])
                        append(digits[Int(byte & 15)])
                    }
                }
                append(0x0A)
            }
        }
    }

    static func decode(_ text: UnsafeRawBufferPointer) throws(VaultError) -> [Secret] {
        var keys: [Secret] = []
        for line in text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) where line.first != 0x23 {
            guard line.count == keyBytes * 2, line.allSatisfy({ nibble($0) != nil }), keys.count < maximumKeys else {
                throw invalid
            }
            keys.append(
                Secret(count: keyBytes) { output in
                    for index in 0..<keyBytes {
                        let at = line.startIndex + index * 2
                        output[index] = (nibble(line[at]) ?? 0) << 4 | (nibble(line[at + 1]) ?? 0)
                    }
                })
        }
        guard !keys.isEmpty else { throw invalid }
        return keys
    }

    private static let invalid = VaultError(
        .keyFileInvalid, "not a vault key: expected one line of 64 hexadecimal digits",
        hint: "restore the file from a backup")

    private static func nibble(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}
