// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Foundation
import CountersignTestOrigin

/// An origin whose certificate must not be trusted, and why.
struct BadOrigin: Sendable, CustomStringConvertible {
    /// Of `Certs/dev/pki/bad-NAME.pem`.
    let name: String
    /// What a client asks for.
    let host: String
    /// All that has to be said against it, in this order.
    let reasons: [String]
    /// Whether an OCSP response, bad-NAME.ocsp, goes with the handshake.
    let hasStaple: Bool

    init(_ name: String, _ reasons: String..., host: String? = nil, hasStaple: Bool = false) {
        self.name = name
        self.host = host ?? "\(name).bad.localhost"
        self.reasons = reasons
        self.hasStaple = hasStaple
    }

    var description: String { name }

    var fixture: ChainOrigins.Chain {
        ChainOrigins.Chain(
            name, certificate: Tool.fixture("bad-\(name).pem"), key: Tool.fixture("bad-\(name).key.pem"),
            staple: hasStaple ? Tool.fixture("bad-\(name).ocsp") : nil)
    }

    /// What the throwaway issuer is called: the first 64 characters, which is as many as a common name may have.
    var issuerName: String { String("Not trusted by Countersign: \(reasons[0])".prefix(64)) }
}

extension ChainOrigins.Chain {
    /// The PEM text of each certificate, as it is sent.
    var certificates: [String] {
        let end = "-----END CERTIFICATE-----\n"
        return TextFile.text(certificate).components(separatedBy: end).dropLast().map { $0 + end }
    }

    /// SHA-256 of the leaf.
    var leafDigest: [UInt8] {
        let text = certificates.first?.components(separatedBy: "-----").dropFirst(2).first ?? ""
        return Digest.sha256.hash(Base64.decode(text.filter { !$0.isWhitespace }) ?? [])
    }

    var fingerprint: String { "sha256:\(Hex.encode(leafDigest))" }
}
