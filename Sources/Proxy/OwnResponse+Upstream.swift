// SPDX-License-Identifier: Apache-2.0

import Certificates
import Upstream

extension OwnResponse {
    /// What a client hears of an origin that cannot be reached, or does not answer.
    init(_ error: UpstreamError) {
        let (status, proxyError) =
            switch error.code {
            case .nameNotFound: (502, "dns_error")
            case .connectFailed: (502, "destination_unavailable")
            case .connectTimedOut: (504, "connection_timeout")
            case .tlsFailed: (502, "tls_protocol_error")
            case .tlsAlert: (502, "tls_alert_received")
            case .tlsTimedOut: (504, "connection_timeout")
            case .malformedResponse: (502, "http_protocol_error")
            case .closedBeforeResponse: (502, "connection_terminated")
            case .closedInResponse: (502, "http_response_incomplete")
            case .timedOut: (504, "http_response_timeout")
            case .trustChanged: (502, "tls_certificate_error")
            }
        self.init(status: status, detail: error.detail, proxyError: proxyError)
    }
}

/// What becomes of a request whose origin's certificate does not verify. The decision is the caller's, and nothing is sent before it.
enum TrustCheck {
    /// Nil: the connection may be used. Otherwise what to tell the client.
    static func refusal(of connection: OriginConnection, trust: UpstreamKey.Trust) -> OwnResponse? {
        guard let tls = connection.tls else { return nil }
        switch trust {
        case .verified:
            guard let found = tls.serverTrust else {
                return OwnResponse(
                    status: 502, detail: "the origin's certificate was not verified",
                    proxyError: "tls_certificate_error")
            }
            guard !found.isTrusted else { return nil }
            return untrusted(found, place: connection.place)
        case .accepted(let leaf):
            guard tls.peerCertificate?.sha256Fingerprint != leaf else { return nil }
            return OwnResponse(
                UpstreamError(.trustChanged, "\(connection.place): the certificate is not the one that was agreed to"))
        }
    }

    /// RFC 9457: the reasons and the leaf's fingerprint, with which the caller may decide to go on.
    private static func untrusted(_ trust: ServerTrust, place: String) -> OwnResponse {
        let reasons = trust.reasons.map(String.init(describing:))
        var response = OwnResponse(
            status: 502, detail: reasons.joined(separator: ", "), proxyError: "tls_certificate_error")
        let fingerprint = trust.chain.first?.fingerprintText ?? ""
        let list = reasons.map { "\"\(AccessLog.escaped($0))\"" }.joined(separator: ",")
        response.contentType = "application/problem+json"
        response.body =
            "{\"title\":\"the origin's certificate is not trusted\",\"status\":502,\"origin\":\"\(AccessLog.escaped(place))\","
            + "\"reasons\":[\(list)],\"fingerprint\":\"\(fingerprint)\"}\n"
        return response
    }
}
