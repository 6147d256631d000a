// SPDX-License-Identifier: Apache-2.0

/// A kind of answer that a site's rule may permit, named as in the allowed-sites list.
package enum AuthenticationScheme: String, CaseIterable, Sendable {
    /// A client certificate in the TLS handshake (RFC 8446 §4.4.2, RFC 5246 §7.4.6).
    case certificate
    /// A device certificate that signs a nonce (PKeyAuth).
    case pkeyauth
    /// Kerberos inside SPNEGO (RFC 4559). NTLM inside SPNEGO is permitted by ``ntlm``.
    case negotiate
    /// NTLMv2 (MS-NLMP), raw or inside SPNEGO.
    case ntlm
    /// RFC 7616.
    case digest
    /// RFC 6750.
    case bearer
    /// RFC 7617.
    case basic

    /// The schemes that this build implements: all, strongest first.
    package static let supported = allCases

    /// The schemes that a site's line permits without `answer=`. PKeyAuth identifies the device to a server, so the
    /// line must name it.
    package static let usual = allCases.filter { $0 != .pkeyauth }
}
