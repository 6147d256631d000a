// SPDX-License-Identifier: Apache-2.0

import CountersignUpstream

extension OwnResponse {
    /// What a client hears of an origin that cannot be reached, or does not answer.
    init(_ error: UpstreamError) {
        let (status, proxyError) =
            switch error.code {
            case .nameNotFound: (502, "dns_error")
            case .connectFailed: (502, "destination_unavailable")
            case .connectTimedOut: (504, "connection_timeout")
            case .tunnelFailed: (502, "destination_unavailable")
            case .tunnelTimedOut: (504, "connection_timeout")
            case .tlsFailed: (502, "tls_protocol_error")
            case .tlsAlert: (502, "tls_alert_received")
            case .tlsTimedOut: (504, "connection_timeout")
            case .malformedResponse: (502, "http_protocol_error")
            case .closedBeforeResponse: (502, "connection_terminated")
            case .closedInResponse: (502, "http_response_incomplete")
            case .timedOut: (504, "http_response_timeout")
            case .notTrusted, .trustChanged: (502, "tls_certificate_error")
            }
        self.init(status: status, detail: error.detail, proxyError: proxyError)
    }
}
