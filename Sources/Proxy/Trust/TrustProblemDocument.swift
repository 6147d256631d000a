// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import CountersignJSON

/// A problem document (RFC 9457) about an origin that is not trusted: everything that its reader needs to decide, and
/// how to proceed.
struct TrustProblemDocument {
    static let type = "urn:countersign:server-not-trusted"

    let origin: Origin
    let trust: ServerTrust
    let address: String?
    let tlsVersion: String?

    private var reasons: String { trust.text }

    var response: OwnResponse {
        var response = OwnResponse(status: 502, detail: reasons, proxyError: "tls_certificate_error")
        response.contentType = "application/problem+json"
        response.body = json
        return response
    }

    /// The document, terminated by a line break.
    var json: String {
        var object = JSONObject()
        object.add("type", Self.type)
        object.add("title", "The origin's certificate is not trusted")
        object.add("status", 502)
        object.add("detail", reasons)
        object.add("host", origin.host)
        object.add("port", UInt64(origin.port))
        object.add("reasons", trust.reasons.map(document))
        if let fingerprint = trust.leaf?.fingerprintText {
            object.add("fingerprint", fingerprint)
            object.add("chain", trust.chain.map(\.pem).joined())
        }
        if let address { object.add("address", address) }
        if let tlsVersion { object.add("tls", tlsVersion) }
        object.add("revocation", Self.object(trust.revocation))
        if let hint { object.add("hint", hint) }
        return object.text + "\n"
    }

    private var hint: String? {
        guard let fingerprint = trust.leaf?.fingerprintText else { return nil }
        let place = HostText.joined(origin.host, origin.port)
        let anchor = trust.missingIssuer.map { TrustHint.anchor(for: $0) + "; " } ?? ""
        return anchor + "to accept this certificate, send the request in absolute form with "
            + "\"Countersign-Trust: \(fingerprint)\", or run "
            + "`countersign trust allow \(place) --fingerprint \(fingerprint)`"
    }

    private func document(_ reason: ServerTrust.Reason) -> JSONObject {
        var object = JSONObject()
        object.add("code", reason.code)
        object.add("text", trust.text(of: reason))
        if let date = reason == .revoked ? trust.revoked?.entry.date : reason.date {
            object.add("date", WallClock.rfc3339(date))
        }
        return object
    }

    private static func object(_ revocation: ServerTrust.Revocation) -> JSONObject {
        var object = JSONObject()
        switch revocation {
        case .good(let source), .revoked(let source):
            object.add("status", revocation.code)
            object.add("by", source.code)
            if let url = source.url { object.add("url", url) }
        case .unknown(let why):
            object.add("status", revocation.code)
            object.add("text", why)
        }
        return object
    }
}

/// The remedy for a server whose certificate does not verify.
package enum TrustHint {
    /// For a certificate whose issuer is missing.
    package static func anchor(for issuer: String) -> String {
        "to trust its issuer, run `countersign trust anchor add FILE` with the certificate of \"\(issuer)\""
    }
}

extension ServerTrust.Reason {
    /// Stable, for programs.
    var code: String {
        switch self {
        case .expired: "expired"
        case .notYetValid: "not-yet-valid"
        case .hostMismatch: "host-mismatch"
        case .selfSigned: "self-signed"
        case .unknownIssuer: "unknown-issuer"
        case .incompleteChain: "incomplete-chain"
        case .revoked: "revoked"
        case .revocationUnknown: "revocation-unknown"
        case .wrongPurpose: "wrong-purpose"
        case .weakKey: "weak-key"
        case .weakSignature: "weak-signature"
        case .caAsLeaf: "ca-as-leaf"
        case .nameConstraint: "name-constraint"
        case .pathLength: "path-length"
        case .other: "other"
        }
    }

    /// Seconds since 1970, if the reason has a date.
    var date: Int64? {
        switch self {
        case .expired(let notAfter): notAfter
        case .notYetValid(let notBefore): notBefore
        default: nil
        }
    }
}

extension ServerTrust.Revocation {
    /// Stable, for programs.
    var code: String {
        switch self {
        case .good: "good"
        case .revoked: "revoked"
        case .unknown: "unknown"
        }
    }
}

extension ServerTrust.RevocationSource {
    /// Stable, for programs.
    var code: String {
        switch self {
        case .stapledOCSP: "stapled-ocsp"
        case .responder: "ocsp"
        case .revocationList, .distributedList: "revocation-list"
        }
    }

    /// The address of a source on the network.
    var url: String? {
        switch self {
        case .stapledOCSP, .revocationList: nil
        case .responder(let url), .distributedList(let url): url
        }
    }
}
