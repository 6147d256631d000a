// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignIssuer
import CountersignTLS

/// One of the demo's sites: its certificate and the credentials that it requires.
package struct DemoSite: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case basic
        case ntlm
        case cert
        case token
        case open
        case untrusted
    }

    package let kind: Kind
    let host: String
    let tls: TLSServerContext
    /// The site's certificate, against which NTLM's channel binding is verified.
    let leaf: Certificate
    let account: PasswordCredential
    /// The grant of an access token; nil if it is not valid now.
    let grant: @Sendable (Secret) -> LocalIssuer.Grant?

    /// The site's line in the allowed-sites list; nil for the site that a profile lists.
    package func line(port: Int) -> String? {
        let site = "https://\(host):\(port)"
        switch kind {
        case .basic, .untrusted: return "\(site) answer=basic credential=\(account.name)"
        case .ntlm: return "\(site) answer=ntlm credential=\(account.name) domain=DEMO"
        case .cert: return "\(site) answer=certificate identity=\(account.name)"
        case .token: return nil
        case .open: return "\(site)"
        }
    }
}

/// The demo's certificates: a CA for the sites, a CA for clients, and an untrusted CA. The keys exist in memory only,
/// except that of the client identity, which is imported into the home together with the sites' root certificate.
package struct DemoCertificates: Sendable {
    /// The CA of the sites. The home trusts its root.
    package let sites: InterceptionAuthority
    /// The CA of the site whose certificate does not verify.
    let untrusted: InterceptionAuthority
    let clients: ClientCA
    package let identity: Identity

    package init(named name: String, at time: Int64) throws(CertificateError) {
        let hosts = DemoSite.Kind.allCases.map(Self.host)
        sites = try InterceptionAuthority.create(permitting: hosts, at: time)
        untrusted = try InterceptionAuthority.create(permitting: hosts, at: time)
        clients = try ClientCA(commonName: "Countersign demo clients", at: time)
        identity = try clients.issue(name, commonName: "demo", lifetime: 86_400, at: time)
    }

    static func host(_ kind: DemoSite.Kind) -> String { "\(kind.rawValue).demo.localhost" }

    /// Creates the site of `kind` with its own certificate. `grant` returns the grant of an access token.
    package func site(
        _ kind: DemoSite.Kind, account: PasswordCredential, at time: Int64,
        grant: @escaping @Sendable (Secret) -> LocalIssuer.Grant?
    ) throws -> DemoSite {
        let key = try PrivateKey.generateP256()
        let host = Self.host(kind)
        let issuer = kind == .untrusted ? untrusted : sites
        let chain = try issuer.mintLeaf(host: host, key: key, at: time)
        let clientCertificates: TLSServerContext.ClientCertificates? =
            kind == .cert ? .init(authorities: [clients.certificate], isRequired: false) : nil
        return DemoSite(
            kind: kind, host: host,
            tls: try TLSServerContext(chain: chain, key: key, host: host, clientCertificates: clientCertificates),
            leaf: chain[0],
            account: account, grant: grant)
    }
}
