// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Why a TLS connection failed, or could not be set up. Equality looks at the code only.
package struct TLSError: Error, Equatable, CustomStringConvertible {
    package enum Code: Equatable, Sendable {
        /// The peer ended the connection with this alert (RFC 8446 §6.2): its number, and its name there.
        case peerAlert(UInt8, name: String)
        /// The handshake came to nothing on this side: the peer's fault.
        case handshakeFailed
        /// The caller refused to go on with a server that is not trusted.
        case serverNotTrusted
        /// The end of the stream without close_notify (RFC 8446 §6.1): what came may be less than what was sent.
        case truncated
        /// What came first is no TLS record.
        case notTLS
        /// The peer wanted to renegotiate once too often, or as somebody else.
        case renegotiationRefused
        /// The client asked for another server name than the one that is served here, or for none.
        case serverNameMismatch(String)
        /// Malformed records or messages after the handshake: the peer's fault.
        case protocolViolation
        /// A certificate, key, name or protocol that OpenSSL does not take: our side's fault.
        case configuration
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    package static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    package var description: String { detail }
}

extension TLSError {
    /// Takes the thread's OpenSSL error queue and makes one error of it: a peer's alert where there is one, else
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

    /// RFC 8446 §6.2, and the ones of RFC 5246 §7.2.2 that it no longer lists.
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
