// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import Foundation

/// An origin whose certificate must not be trusted, and the reasons.
struct BadOrigin: Sendable, CustomStringConvertible {
    /// The NAME in `Certs/dev/pki/bad-NAME.pem`.
    let name: String
    /// The host that clients request.
    let host: String
    /// All reasons, in the reported order.
    let reasons: [String]
    /// Whether the server staples the OCSP response bad-NAME.ocsp.
    let hasStaple: Bool

    init(_ name: String, _ reasons: String..., host: String? = nil, hasStaple: Bool = false) {
        self.name = name
        self.host = host ?? "\(name).bad.localhost"
        self.reasons = reasons
        self.hasStaple = hasStaple
    }

    var description: String { name }

    /// The first reason as part of a JSON string, or of a structured field's.
    var quotedReason: String { reasons[0].replacingOccurrences(of: "\"", with: "\\\"") }

    var fixture: ChainOrigins.Chain {
        ChainOrigins.Chain(
            name, certificate: Tool.fixture("bad-\(name).pem"), key: Tool.fixture("bad-\(name).key.pem"),
            staple: hasStaple ? Tool.fixture("bad-\(name).ocsp") : nil)
    }

    /// The line of `curl -v` with the reason. For wrong dates and another host it is the subject of a leaf from the
    /// interception CA, otherwise the name of the throwaway issuer, cut to the 64 characters that it may have.
    var reasonLine: String {
        let name = String("Not trusted by Countersign: \(reasons[0])".prefix(64))
        return isFromInterceptionAuthority ? "*  subject: O=\(name)\n" : "*  issuer: CN=\(name)\n"
    }

    private var isFromInterceptionAuthority: Bool {
        let isAddress = host.allSatisfy { $0.isNumber || $0 == "." }
        return reasons.allSatisfy { reason in
            reason == "certificate is for another host" && !isAddress
                || name == "expired" || name == "not-yet-valid" || name == "control"
        }
    }
}

extension ChainOrigins.Chain {
    /// Each certificate in PEM, in the order sent.
    var certificates: [String] {
        let end = "-----END CERTIFICATE-----\n"
        return TextFile.text(certificate).components(separatedBy: end).dropLast().map { $0 + end }
    }

    /// The SHA-256 of the leaf.
    var leafDigest: [UInt8] {
        let text = certificates.first?.components(separatedBy: "-----").dropFirst(2).first ?? ""
        return Digest.sha256.hash(Base64.decode(text.filter { !$0.isWhitespace }) ?? [])
    }

    var fingerprint: String { "sha256:\(Hex.encode(leafDigest))" }
}
