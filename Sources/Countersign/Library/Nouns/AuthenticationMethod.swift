// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// How a server asks, as `NSURLAuthenticationMethod…` would say it.
public enum AuthenticationMethod: Hashable, Sendable {
    /// RFC 7617.
    case basic
    /// RFC 7616.
    case digest
    /// NTLM behind the word `NTLM` (MS-NLMP).
    case ntlm
    /// Kerberos or NTLM inside SPNEGO behind the word `Negotiate` (RFC 4559).
    case negotiate
    /// RFC 6750.
    case bearer
    /// A TLS CertificateRequest (RFC 8446 §4.3.2).
    case clientCertificate
    /// Whether the server is to be trusted: always the caller's decision.
    case serverTrust
    /// Whatever else; in the words of who asks.
    case other(String)

    /// The words of the allowed-sites list that permit an answer, or none.
    var schemes: [AuthenticationScheme] {
        switch self {
        case .basic: [.basic]
        case .digest: [.digest]
        case .ntlm: [.ntlm]
        case .negotiate: [.negotiate, .ntlm]
        case .bearer: [.bearer]
        case .clientCertificate: [.certificate]
        case .serverTrust, .other: []
        }
    }
}

extension AuthenticationMethod: CustomStringConvertible {
    /// As a person would call it.
    public var description: String {
        switch self {
        case .basic: "Basic"
        case .digest: "Digest"
        case .ntlm: "NTLM"
        case .negotiate: "Negotiate"
        case .bearer: "Bearer"
        case .clientCertificate: "client certificate"
        case .serverTrust: "server trust"
        case .other(let name): name
        }
    }
}
