// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// A method of authentication, corresponding to the `NSURLAuthenticationMethod…` constants.
public enum AuthenticationMethod: Hashable, Sendable {
    /// Basic (RFC 7617).
    case basic
    /// Digest (RFC 7616).
    case digest
    /// NTLM with the scheme name `NTLM` (MS-NLMP).
    case ntlm
    /// Kerberos or NTLM in SPNEGO, with the scheme name `Negotiate` (RFC 4559).
    case negotiate
    /// Bearer tokens (RFC 6750).
    case bearer
    /// A TLS CertificateRequest (RFC 8446 §4.3.2).
    case clientCertificate
    /// Evaluation of the server's certificate, which is always the caller's decision.
    case serverTrust
    /// Any other method, by name.
    case other(String)

    /// The schemes in the list of sites that permit an answer with an enrolled credential. Kerberos uses the user's own
    /// ticket, with which exchanges and the proxy answer without asking.
    var schemes: [AuthenticationScheme] {
        switch self {
        case .basic: [.basic]
        case .digest: [.digest]
        case .ntlm: [.ntlm]
        case .negotiate: [.ntlm]
        case .bearer: [.bearer]
        case .clientCertificate: [.certificate]
        case .serverTrust, .other: []
        }
    }
}

extension AuthenticationMethod: CustomStringConvertible {
    /// The method's name for display.
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
