// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges

/// The key of an identity, as the answer to a PKeyAuth challenge uses it. Like TLS handshakes, which sign with the same
/// keys, it signs on the event loop.
final class IdentityKey: DeviceKey {
    let algorithm: String
    private let key: PrivateKey

    /// Nil for a key that makes no signatures of JSON Web Signature that servers know.
    init?(_ identity: Identity) {
        switch identity.key.kind {
        case .rsa: algorithm = "RS256"
        case .ec(curve: "P-256"): algorithm = "ES256"
        case .ec, .rsaPSS, .ed25519, .ed448, .dsa, .other: return nil
        }
        key = identity.key
    }

    func signature(of message: [UInt8]) -> [UInt8]? {
        algorithm == "RS256" ? try? key.rs256Signature(of: message) : try? key.es256Signature(of: message)
    }
}
