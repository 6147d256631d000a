// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// The channel binding that links a certification request to one TLS connection (RFC 7030 §3.5), as the text of its
/// challengePassword.
///
/// Renegotiation after the request was created changes `tls-unique`, and the server then refuses the request.
struct ConnectionLink: Equatable {
    enum Kind: CaseIterable, Equatable {
        /// `tls-unique` of TLS 1.2 (RFC 5929 §3): the client's Finished message, because sessions are never resumed
        /// here.
        case unique
        /// `tls-exporter` of TLS 1.3 (RFC 9266 §2).
        case exporter

        /// The length of the base64 text.
        var textLength: Int {
            switch self {
            case .unique: 16
            case .exporter: 44
            }
        }
    }

    let kind: Kind
    /// base64 of the channel binding.
    let text: String

    private static let label = "EXPORTER-Channel-Binding"
    private static let exporterBytes = 32

    /// Nil if the handshake is incomplete, was a resumption, or has no such value.
    init?(of ssl: OpaquePointer) {
        guard SSL_is_init_finished(ssl) == 1, SSL_session_reused(ssl) == 0 else { return nil }
        var value = [UInt8](repeating: 0, count: 64)
        if SSL_version(ssl) == TLS1_3_VERSION {
            kind = .exporter
            guard
                SSL_export_keying_material(
                    ssl, &value, Self.exporterBytes, Self.label, Self.label.utf8.count, nil, 0, 1) == 1
            else { return nil }
            text = Base64.encode(value.prefix(Self.exporterBytes))
        } else {
            kind = .unique
            let count = SSL_get_finished(ssl, &value, value.count)
            guard count > 0, count <= value.count else { return nil }
            text = Base64.encode(value.prefix(count))
        }
        guard text.utf8.count == kind.textLength else { return nil }
    }
}
