// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// Whether a server's certificate is revoked.
public enum RevocationStatus: Hashable, Sendable {
    /// The source of a status. Later versions may add sources, so include a `default` in a `switch`.
    public enum Source: Hashable, Sendable {
        /// The OCSP response that the server sent with its certificate (RFC 6066 §8).
        case stapledResponse
        /// A revocation list in the home's `Certs/anchors`.
        case localList
        /// The OCSP responder at this URL, which the certificate names (RFC 6960).
        case responder(url: String)
        /// The revocation list at this URL, which the certificate names (RFC 5280 §5).
        case list(url: String)
    }

    /// The certificate is not revoked.
    case good(Source)
    /// The certificate or one of its issuers is revoked.
    case revoked(Source)
    /// Unknown, with a short sentence that says why, in lower case and without a full stop.
    case unknown(String)

    init(_ revocation: ServerTrust.Revocation) {
        self =
            switch revocation {
            case .good(let source): .good(Source(source))
            case .revoked(let source): .revoked(Source(source))
            case .unknown(let why): .unknown(why)
            }
    }
}

extension RevocationStatus.Source {
    fileprivate init(_ source: ServerTrust.RevocationSource) {
        self =
            switch source {
            case .stapledOCSP: .stapledResponse
            case .revocationList: .localList
            case .responder(let url): .responder(url: url)
            case .distributedList(let url): .list(url: url)
            }
    }
}
