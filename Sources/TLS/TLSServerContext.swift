// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import Certificates

/// What connections from clients to one name start from: the leaf for it, its chain and key.
///
/// `http/1.1` is chosen by ALPN (RFC 7301) where it is offered; a client that offers nothing but `h2` gets
/// no_application_protocol, any other goes on without. No client may renegotiate. Sessions are resumed by tickets.
package final class TLSServerContext: Sendable {
    /// Whether a client must show a certificate, and of whom.
    package struct ClientCertificates: Sendable {
        package let authorities: [Certificate]
        package let isRequired: Bool

        /// `authorities` are named in the request, and a client's chain must end in one of them.
        package init(authorities: [Certificate], isRequired: Bool) {
            self.authorities = authorities
            self.isRequired = isRequired
        }
    }

    let ssl: SSLContext
    /// The only server name (RFC 6066 §3) that is served; nil: whatever the client says.
    let serverName: String?

    /// `chain` is sent whole, leaf first. With a DNS name as `host` a client must ask for it by SNI; an IP address is
    /// never asked for, so that any name will do then, as it does for nil. `clientCertificates` has every client
    /// asked for one, and no session resumed.
    package convenience init(
        chain: [Certificate], key: PrivateKey, host: String?, clientCertificates: ClientCertificates? = nil
    ) throws(TLSError) {
        try self.init(
            chain: chain, key: key, host: host, clientCertificates: clientCertificates, versions: SSLContext.versions)
    }

    init(
        chain: [Certificate], key: PrivateKey, host: String?, clientCertificates: ClientCertificates?,
        versions: SSLContext.Versions
    ) throws(TLSError) {
        serverName = host.flatMap { isIPAddress($0) ? nil : $0.lowercased() }
        ssl = try SSLContext(method: TLS_server_method(), versions: versions)
        SSL_CTX_set_options(ssl.pointer, csn_SSL_OP_NO_RENEGOTIATION | csn_SSL_OP_CIPHER_SERVER_PREFERENCE)
        SSL_CTX_set_num_tickets(ssl.pointer, 1)
        SSL_CTX_set_session_id_context(ssl.pointer, "countersign", 11)
        SSL_CTX_set_client_hello_cb(
            ssl.pointer, { ssl, alert, _ in TLSEngine.of(ssl)?.clientSaidHello(alert: alert) ?? 0 }, nil)
        SSL_CTX_set_alpn_select_cb(
            ssl.pointer,
            { _, chosen, chosenLength, offered, offeredLength, _ in
                ApplicationProtocols.select(from: offered, offeredLength, into: chosen, chosenLength)
            }, nil)
        try use(chain: chain, key: key)
        if let clientCertificates { try ask(for: clientCertificates) }
    }

    private func use(chain: [Certificate], key: PrivateKey) throws(TLSError) {
        guard let leaf = chain.first else { throw TLSError(.configuration, "a server needs a certificate") }
        ERR_clear_error()
        let used = withStack(of: chain.dropFirst()) { issuers in
            leaf.withX509 { leaf in key.withPKEY { SSL_CTX_use_cert_and_key(ssl.pointer, leaf, $0, issuers, 1) } }
        }
        guard used == 1 else { throw .drained(.configuration, "certificate or key of \"\(leaf)\" not taken") }
    }

    private func ask(for certificates: ClientCertificates) throws(TLSError) {
        SSL_CTX_set_verify(
            ssl.pointer, SSL_VERIFY_PEER | (certificates.isRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
        SSL_CTX_set_options(ssl.pointer, csn_SSL_OP_NO_TICKET)
        SSL_CTX_set_num_tickets(ssl.pointer, 0)
        let store = SSL_CTX_get_cert_store(ssl.pointer)
        for authority in certificates.authorities {
            let added = authority.withX509 {
                X509_STORE_add_cert(store, $0) == 1 && SSL_CTX_add_client_CA(ssl.pointer, $0) == 1
            }
            guard added else { throw .drained(.configuration, "authority \"\(authority)\" not taken") }
        }
    }
}
