// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Limits the work for one chain, which happens on an event loop and is determined by the sender. The unit is a
/// microsecond, approximately, on a processor of 2020.
final class VerificationBudget {
    /// As much as a hundred signatures with P-256, Go's limit.
    static let total = 100 * (80 + signatureOverhead)
    /// For each certificate of a path, in addition to its signature.
    static let signatureOverhead = 80
    /// To find out whether one certificate may have issued another one.
    static let examination = 5
    /// To check one certificate's content.
    static let contentCheck = 40

    private(set) var remaining = total

    /// Returns false, and spends nothing, if less remains.
    func spend(_ cost: Int) -> Bool {
        guard cost <= remaining else { return false }
        remaining -= cost
        return true
    }

    /// Counts work that has been done already.
    func charge(_ cost: Int) { remaining -= min(cost, remaining) }
}

extension Certificate {
    /// The time to check one signature by this certificate's key. Nil if it is far above that of the keys in use, so
    /// that the key must not be used: RSA with more than 8192 bits or an exponent of more than 32 bits, DSA with more
    /// than 3072 bits, curves over binary fields, and unknown algorithms.
    var signatureCost: Int? {
        withX509 { x509 in
            guard let key = X509_get0_pubkey(x509) else { return nil }
            switch KeyKind(of: key) {
            case .rsa(let bits), .rsaPSS(let bits):
                let exponentBits = Self.exponentBits(of: key)
                guard bits <= 8192, exponentBits <= 32 else { return nil }
                // Proportional to the square of the modulus; 20 for 2048 bits, with the usual exponent of 17 bits.
                return max(1, bits * bits * max(exponentBits, 17) / (17 * 2048 * 2048 / 20))
            case .dsa(let bits): return bits <= 3072 ? 1000 : nil
            case .ec("P-256"): return 80
            case .ec("P-384"), .ec("P-521"): return 800
            case .ec(let curve): return Self.primeCurves.contains(curve) ? 1200 : nil
            case .ed25519: return 140
            case .ed448: return 250
            case .other: return nil
            }
        }
    }

    /// Other curves over prime fields of at most 512 bits.
    private static let primeCurves: Set = [
        "prime192v1", "secp192k1", "secp224k1", "secp224r1", "secp256k1", "brainpoolP160r1", "brainpoolP192r1",
        "brainpoolP224r1", "brainpoolP256r1", "brainpoolP320r1", "brainpoolP384r1", "brainpoolP512r1",
    ]

    private static func exponentBits(of key: OpaquePointer) -> Int {
        var exponent: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, "e", &exponent) == 1 else { return .max }
        defer { BN_free(exponent) }
        return Int(BN_num_bits(exponent))
    }
}
