// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream

/// A response made by the proxy: short, plain, and without any data from the request.
struct OwnResponse {
    var status: Int
    /// A sentence for the user, which is also the `details` of `Proxy-Status`.
    var detail: String
    /// An error of RFC 9209 §2.3, such as `connection_refused`.
    var proxyError: String?
    var extraFields: [(String, String)] = []
    var contentType = "text/plain; charset=utf-8"
    /// Replaces the sentence as the content.
    var body: String?

    init(status: Int, detail: String, proxyError: String? = nil) {
        self.status = status
        self.detail = detail
        self.proxyError = proxyError
    }

    /// The fields, without those of the connection and the content's length, and the content.
    var message: (fields: [(String, String)], content: [UInt8]) {
        var fields = extraFields
        fields.append(("Proxy-Status", ProxyStatus.value(error: proxyError, details: detail)))
        fields.append(("Content-Type", contentType))
        return (fields, Array((body ?? "countersign: \(detail)\n").utf8))
    }

    /// The whole response in HTTP/1.1. A HEAD gets only the head.
    func bytes(keepAlive: Bool, to method: Method) -> [UInt8] {
        let (fields, content) = message
        return GeneratedResponse(
            status: status, fields: fields, body: content, closes: !keepAlive, answersHead: method == .head
        ).serialized()
    }

    /// The request returns to a proxy that has forwarded it (RFC 5842 §7.2, RFC 9209 §2.3.24).
    static func loop(_ detail: String) -> OwnResponse {
        OwnResponse(status: 508, detail: detail, proxyError: "proxy_loop_detected")
    }

    static var proxyAuthenticationRequired: OwnResponse {
        var response = OwnResponse(status: 407, detail: "the client token is missing or wrong")
        response.extraFields = [("Proxy-Authenticate", "Basic realm=\"countersign\", charset=\"UTF-8\"")]
        return response
    }
}

extension OwnResponse {
    /// The response for an origin that cannot be reached or does not answer.
    init(_ error: UpstreamError) {
        let (status, proxyError) =
            switch error.code {
            case .nameNotFound: (502, "dns_error")
            case .localAddress: (403, "destination_ip_prohibited")
            case .loop: (508, "proxy_loop_detected")
            case .connectFailed: (502, "destination_unavailable")
            case .connectTimedOut: (504, "connection_timeout")
            case .tunnelFailed, .tunnelInterrupted: (502, "destination_unavailable")
            case .tunnelRefused: (502, "connection_refused")
            case .noRoute: (502, "destination_unavailable")
            case .tunnelTimedOut: (504, "connection_timeout")
            case .tlsFailed: (502, "tls_protocol_error")
            case .tlsAlert: (502, "tls_alert_received")
            case .tlsTimedOut: (504, "connection_timeout")
            case .malformedResponse, .needsHTTP1: (502, "http_protocol_error")
            case .closedBeforeResponse, .notProcessed, .networkGone: (502, "connection_terminated")
            case .closedInResponse: (502, "http_response_incomplete")
            case .timedOut: (504, "http_response_timeout")
            case .notTrusted, .trustChanged, .parentNotTrusted: (502, "tls_certificate_error")
            case .ownFault: (500, "proxy_internal_error")
            }
        self.init(status: status, detail: error.detail, proxyError: proxyError)
        guard let response = error.parentResponse else { return }
        if response.status == 508 { self = .loop(error.detail) }
        guard response.isChallenge else { return }
        // The client may answer the parent itself.
        self.status = response.status
        extraFields = response.fields.values(of: .proxyAuthenticate).map { ("Proxy-Authenticate", $0) }
    }
}
