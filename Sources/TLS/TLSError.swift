// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// Why a TLS connection failed or could not be set up. Errors with the same code are equal.
package struct TLSError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The peer ended the connection with an alert: its number and its name in RFC 8446 §6.2.
        case peerAlert(UInt8, name: String)
        /// The handshake failed on this side, because of the peer.
        case handshakeFailed
        /// The caller refused to proceed with a server that is not trusted.
        case serverNotTrusted
        /// The stream ended without close_notify (RFC 8446 §6.1): the peer may have sent more than was received.
        case truncated
        /// The first bytes are not a TLS record.
        case notTLS
        /// The peer renegotiated too often or with another certificate.
        case renegotiationRefused
        /// The client sent a server name other than the configured one, or none.
        case serverNameMismatch(String)
        /// Malformed records or messages after the handshake, because of the peer.
        case protocolViolation
        /// OpenSSL does not accept a certificate, key, name or protocol, because of this program.
        case configuration
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}

extension TLSError {
    /// Empties the thread's OpenSSL error queue into one error: `peerAlert` if the peer sent an alert, otherwise
    /// `code`.
    static func drained(_ code: Code, _ operation: String) -> TLSError {
        var reasons: [String] = []
        var alert: UInt8?
        while true {
            let entry = ERR_get_error()
            guard entry != 0 else { break }
            let reason = csn_ERR_GET_REASON(entry) - SSL_AD_REASON_OFFSET
            if csn_ERR_GET_LIB(entry) == ERR_LIB_SSL, let number = UInt8(exactly: reason) { alert = number }
            reasons.append(ERR_reason_error_string(entry).map { String(cString: $0) } ?? "error \(entry)")
        }
        if let alert {
            let name = alertNames[alert] ?? "alert"
            return TLSError(.peerAlert(alert, name: name), "the peer sent the TLS alert \(name) (\(alert))")
        }
        return TLSError(code, reasons.isEmpty ? operation : "\(operation): \(reasons.joined(separator: "; "))")
    }

    /// The alerts of RFC 8446 §6.2, and those of RFC 5246 §7.2.2 that it no longer lists.
    private static let alertNames: [UInt8: String] = [
        0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed",
        22: "record_overflow", 30: "decompression_failure", 40: "handshake_failure", 41: "no_certificate",
        42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
        46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error",
        51: "decrypt_error", 60: "export_restriction", 70: "protocol_version", 71: "insufficient_security",
        80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation",
        109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name",
        113: "bad_certificate_status_response", 115: "unknown_psk_identity", 116: "certificate_required",
        120: "no_application_protocol",
    ]
}
