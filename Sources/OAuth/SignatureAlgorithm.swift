// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The signature algorithms of RFC 7518 §3.1 and RFC 8037 §3.1 that have a public key. Without `none` and HMAC.
package enum SignatureAlgorithm: String, CaseIterable, Sendable {
    case rs256 = "RS256"
    case rs384 = "RS384"
    case rs512 = "RS512"
    case ps256 = "PS256"
    case ps384 = "PS384"
    case ps512 = "PS512"
    case es256 = "ES256"
    case es384 = "ES384"
    case es512 = "ES512"
    /// With Ed25519.
    case edDSA = "EdDSA"

    /// The algorithm of an `alg`, compared byte by byte (RFC 7515 §4.1.1).
    init?(named name: String) {
        guard let algorithm = Self.allCases.first(where: { $0.rawValue.isExactly(name) }) else { return nil }
        self = algorithm
    }

    /// The hash function; for `at_hash` with Ed25519, SHA-512 (RFC 8032 §5.1).
    var digest: Digest {
        switch self {
        case .rs256, .ps256, .es256: .sha256
        case .rs384, .ps384, .es384: .sha384
        case .rs512, .ps512, .es512, .edDSA: .sha512
        }
    }

    var scheme: VerificationKey.Scheme {
        switch self {
        case .rs256, .rs384, .rs512: .rsaPKCS1(digest)
        case .ps256, .ps384, .ps512: .rsaPSS(digest)
        case .es256, .es384, .es512: .ecdsa(digest)
        case .edDSA: .ed25519
        }
    }

    /// Whether a key of that kind can verify the algorithm. An ECDSA algorithm has one curve (RFC 7518 §3.4).
    func fits(_ kind: VerificationKey.Kind) -> Bool {
        switch self {
        case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: kind == .rsa
        case .es256: kind == .ec(.p256)
        case .es384: kind == .ec(.p384)
        case .es512: kind == .ec(.p521)
        case .edDSA: kind == .ed25519
        }
    }
}
