// SPDX-License-Identifier: Apache-2.0

extension ServerTrust {
    /// The reasons as text, in their order: `certificate expired 2026-01-01`,
    /// `issued by "CN=Corp Root", which is not trusted`.
    package var texts: [String] { reasons.map(text) }

    /// The reasons as one text, separated by commas.
    package var text: String { texts.joined(separator: ", ") }

    /// One of the reasons as text. If the issuer is missing, the text names it; if a certificate is revoked, it names
    /// the issuer and the time.
    package func text(of reason: Reason) -> String {
        switch reason {
        case .unknownIssuer, .incompleteChain:
            missingIssuer.map { "issued by \"\($0)\", which is not trusted" } ?? reason.description
        case .revoked: revoked?.text ?? reason.description
        case .revocationUnknown:
            if case .unknown(let why) = revocation { "\(reason): \(why)" } else { reason.description }
        default: reason.description
        }
    }

    /// The subject of the CA certificate that would have to be trusted: the issuer of the last certificate in the path
    /// from the leaf. Nil if no issuer is missing. The origin chose the text: it is shortened to 200 characters, but
    /// may contain any of them.
    package var missingIssuer: String? {
        guard reasons.contains(.unknownIssuer) || reasons.contains(.incompleteChain), var last = leaf else {
            return nil
        }
        var path = [last]
        while let issuer = chain.first(where: { !path.contains($0) && $0.issued(last) }) {
            path.append(issuer)
            last = issuer
        }
        let name = last.issuer
        guard !name.isEmpty else { return nil }
        return name.count > 200 ? "\(name.prefix(200))..." : name
    }
}
