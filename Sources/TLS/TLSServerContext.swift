// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// The configuration of connections from clients to one name: its leaf certificate, chain and key.
///
/// Selects `h2` by ALPN (RFC 7301) on connections that may use it, otherwise `http/1.1`, if the client offers it. A
/// client that offers only `h2` where it may not gets the alert no_application_protocol; any other continues without
/// ALPN. Renegotiation is refused. Sessions are resumed with
/// tickets.
package final class TLSServerContext: Sendable {
    /// Which client certificates are requested, and whether one is required.
    package struct ClientCertificates: Sendable {
        package let authorities: [Certificate]
        package let isRequired: Bool

        /// The request names `authorities`, and a client's chain must end in one of them.
        package init(authorities: [Certificate], isRequired: Bool) {
            self.authorities = authorities
            self.isRequired = isRequired
        }
    }

    let ssl: SSLContext
    /// The only server name (RFC 6066 §3) that is accepted; nil accepts every name.
    let serverName: String?
    private let chain: [Certificate]
    private let key: PrivateKey
    /// Only sessions with the same leaf are resumed (SSL_CTX_set_session_id_context(3)).
    private let sessionContext: [UInt8]

    /// The whole `chain` is sent, leaf first. If `host` is a DNS name, clients must send it as SNI. SNI cannot carry an
    /// IP address, so for an address, or nil, any name is accepted. With `clientCertificates` every client gets
    /// a certificate request, and no session is resumed.
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
        guard let leaf = chain.first else { throw TLSError(.configuration, "a server needs a certificate") }
        serverName = host.flatMap { isIPAddress($0) ? nil : $0.lowercased() }
        self.chain = chain
        self.key = key
        sessionContext = leaf.sha256Fingerprint
        if clientCertificates == nil, versions == SSLContext.versions {
            ssl = try Self.common.get()
        } else {
            ssl = try Self.make(versions)
        }
        if let clientCertificates { try ask(for: clientCertificates) }
        // Finds out now, and not with the first client, whether the key belongs to the leaf.
        ERR_clear_error()
        guard let trial = SSL_new(ssl.pointer) else { throw .drained(.configuration, "TLS connection") }
        defer { SSL_free(trial) }
        guard install(on: trial) else {
            throw .drained(.configuration, "OpenSSL does not accept the certificate or key of \"\(leaf)\"")
        }
    }

    /// Configures `connection`, a connection of ``ssl``, to send the chain. False if the key does not belong to the
    /// leaf.
    func install(on connection: OpaquePointer) -> Bool {
        let used = withStack(of: chain.dropFirst()) { issuers in
            chain[0].withX509 { leaf in key.withPKEY { SSL_use_cert_and_key(connection, leaf, $0, issuers, 1) } }
        }
        return used == 1
            && SSL_set_session_id_context(connection, sessionContext, UInt32(sessionContext.count)) == 1
    }

    // MARK: OpenSSL's context

    /// Shared by all names: creating it takes as long as minting a leaf, and far more memory.
    private static let common: Result<SSLContext, TLSError> = {
        do throws(TLSError) { return .success(try make(SSLContext.versions)) } catch { return .failure(error) }
    }()

    private static func make(_ versions: SSLContext.Versions) throws(TLSError) -> SSLContext {
        let ssl = try SSLContext(method: TLS_server_method(), versions: versions)
        SSL_CTX_set_options(ssl.pointer, csn_SSL_OP_NO_RENEGOTIATION | csn_SSL_OP_CIPHER_SERVER_PREFERENCE)
        SSL_CTX_set_num_tickets(ssl.pointer, 1)
        SSL_CTX_set_client_hello_cb(
            ssl.pointer, { ssl, alert, _ in TLSEngine.of(ssl)?.clientSaidHello(alert: alert) ?? 0 }, nil)
        SSL_CTX_set_alpn_select_cb(
            ssl.pointer,
            { ssl, chosen, chosenLength, offered, offeredLength, _ in
                ApplicationProtocols.select(
                    from: offered, offeredLength, speaksHTTP2: TLSEngine.of(ssl)?.speaksHTTP2 ?? false, into: chosen,
                    chosenLength)
            }, nil)
        return ssl
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
            guard added else {
                throw .drained(.configuration, "OpenSSL does not accept the authority \"\(authority)\"")
            }
        }
    }
}
