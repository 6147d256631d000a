// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignTLS

/// One of the demo's loopback sites: what it asks for, and how it looks at the answer.
struct DemoSite: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case basic
        case ntlm
        case cert
        case open
        case untrusted
    }

    let kind: Kind
    let host: String
    let tls: TLSServerContext
    /// The site's own leaf: NTLM's channel binding is checked against it.
    let leaf: Certificate
    let account: PasswordCredential

    /// What the allowed-sites list says of it, without the port.
    func line(port: Int) -> String {
        let site = "https://\(host):\(port)"
        switch kind {
        case .basic, .untrusted: return "\(site) answer=basic credential=\(account.name)"
        case .ntlm: return "\(site) answer=ntlm credential=\(account.name) domain=DEMO"
        case .cert: return "\(site) answer=certificate identity=\(account.name)"
        case .open: return "\(site)"
        }
    }
}

/// The demo's certificates: an authority for the sites, one for clients, and one that nobody trusts. All of it lives in memory
/// and goes with the process, but for the public root, which the home is told to trust, and the identity, which it is given.
struct DemoAuthorities: Sendable {
    let sites: InterceptionAuthority
    let strangers: InterceptionAuthority
    let clients: ClientAuthority
    let identity: Identity

    init(named name: String, at time: Int64) throws(CertificateError) {
        let hosts = DemoSite.Kind.allCases.map(Self.host)
        sites = try InterceptionAuthority.create(permitting: hosts, at: time)
        strangers = try InterceptionAuthority.create(permitting: hosts, at: time)
        clients = try ClientAuthority(commonName: "Countersign demo clients", at: time)
        identity = try clients.issue(name, commonName: "demo", lifetime: 86_400, at: time)
    }

    static func host(_ kind: DemoSite.Kind) -> String { "\(kind.rawValue).demo.localhost" }

    /// The site of `kind`, with a leaf of its own.
    func site(_ kind: DemoSite.Kind, account: PasswordCredential, at time: Int64) throws -> DemoSite {
        let key = try PrivateKey.generateP256()
        let host = Self.host(kind)
        let authority = kind == .untrusted ? strangers : sites
        let chain = try authority.mintLeaf(host: host, key: key, at: time)
        let asks: TLSServerContext.ClientCertificates? =
            kind == .cert ? .init(authorities: [clients.certificate], isRequired: false) : nil
        return DemoSite(
            kind: kind, host: host,
            tls: try TLSServerContext(chain: chain, key: key, host: host, clientCertificates: asks), leaf: chain[0],
            account: account)
    }
}
