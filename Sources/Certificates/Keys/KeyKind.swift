// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A public or private key's algorithm and size.
package enum KeyKind: Hashable, Sendable, CustomStringConvertible {
    case rsa(bits: Int)
    /// An RSA key for RSASSA-PSS only (RFC 4055 §1.2).
    case rsaPSS(bits: Int)
    /// The curve's NIST name if it has one, otherwise OpenSSL's name.
    case ec(curve: String)
    case ed25519
    case ed448
    case dsa(bits: Int)
    case other(String)

    init(of key: OpaquePointer) {
        let bits = Int(EVP_PKEY_get_bits(key))
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA: self = .rsa(bits: bits)
        case EVP_PKEY_RSA_PSS: self = .rsaPSS(bits: bits)
        case EVP_PKEY_EC: self = .ec(curve: Self.curve(of: key))
        case EVP_PKEY_ED25519: self = .ed25519
        case EVP_PKEY_ED448: self = .ed448
        case EVP_PKEY_DSA: self = .dsa(bits: bits)
        case let identifier: self = .other(OBJ_nid2sn(identifier).map { String(cString: $0) } ?? "unknown key")
        }
    }

    /// Whether the key meets the minimum strength for certificates: RSA 2048, P-256, or an Edwards curve.
    package var isStrongEnough: Bool {
        switch self {
        case .rsa(let bits), .rsaPSS(let bits): bits >= 2048 && bits.isMultiple(of: 8)
        case .ec(let curve): ["P-256", "P-384", "P-521"].contains(curve)
        case .ed25519, .ed448: true
        case .dsa, .other: false
        }
    }

    package var description: String {
        switch self {
        case .rsa(let bits): "RSA \(bits)"
        case .rsaPSS(let bits): "RSA-PSS \(bits)"
        case .ec(let curve): "EC \(curve)"
        case .ed25519: "Ed25519"
        case .ed448: "Ed448"
        case .dsa(let bits): "DSA \(bits)"
        case .other(let name): name
        }
    }

    private static func curve(of key: OpaquePointer) -> String {
        var buffer = [CChar](repeating: 0, count: 80)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &buffer, buffer.count, &length) == 1 else {
            return "with explicit parameters"
        }
        let name = String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return switch name {
        case "prime256v1": "P-256"
        case "secp384r1": "P-384"
        case "secp521r1": "P-521"
        default: name
        }
    }
}
