// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignChallenges

@testable import CountersignTLS

/// One engine with its input, its output and its results.
final class EngineSide {
    let engine: TLSEngine
    var incoming: [UInt8] = []
    var outgoing: [UInt8] = []
    var plaintext: [UInt8] = []
    var lastStep: TLSEngine.Step?
    var error: TLSError?

    init(_ engine: TLSEngine) {
        self.engine = engine
        engine.output = { [unowned self] in outgoing += $0 }
    }

    /// Passes up to `chunk` bytes to the engine and runs it as far as possible; false if it consumed nothing or has
    /// nothing more to do.
    func turn(chunk: Int) -> Bool {
        guard error == nil else { return false }
        let lent = Array(incoming.prefix(chunk))
        let taken = lent.withUnsafeBytes { bytes in engine.withInput(bytes) { advance() } }
        incoming.removeFirst(taken)
        return taken > 0
    }

    private func advance() {
        do throws(TLSError) {
            if !engine.isEstablished {
                lastStep = try engine.handshake()
                guard case .done = lastStep else { return }
            }
            var buffer = [UInt8](repeating: 0, count: 1000)
            while true {
                lastStep = try read(&buffer)
                guard case .done(let count) = lastStep else { return }
                plaintext += buffer[..<count]
            }
        } catch {
            self.error = error
        }
    }

    private func read(_ buffer: inout [UInt8]) throws(TLSError) -> TLSEngine.Step {
        try buffer.withUnsafeMutableBytes { bytes in Result { () throws(TLSError) in try engine.read(into: bytes) } }
            .get()
    }

    func write(_ text: String) throws(TLSError) -> TLSEngine.Step {
        try Array(text.utf8).withUnsafeBytes { bytes in Result { () throws(TLSError) in try engine.write(bytes) } }
            .get()
    }

    var text: String { String(decoding: plaintext, as: UTF8.self) }
}

/// A client's and a server's engine, connected in memory.
final class EnginePair {
    let client: EngineSide
    let server: EngineSide
    private let chunk: Int

    init(
        client: TLSClientContext, server: TLSServerContext, host: String = "localhost", alpn: [String] = ["http/1.1"],
        session: TLSSession? = nil, asksAboutTrust: Bool = false, revocation: RevocationCheck = .soft,
        chunk: Int = .max, speaksHTTP2: Bool = false
    ) throws {
        self.client = EngineSide(
            try TLSEngine(
                client: client, host: host, alpn: alpn, session: session, asksAboutTrust: asksAboutTrust,
                revocation: revocation))
        self.server = EngineSide(try TLSEngine(server: server, speaksHTTP2: speaksHTTP2))
        self.chunk = chunk
    }

    /// Transfers bytes until both engines wait.
    func run() {
        var goesOn = true
        while goesOn {
            goesOn = client.turn(chunk: chunk)
            goesOn = carry(client, server) || goesOn
            goesOn = server.turn(chunk: chunk) || goesOn
            goesOn = carry(server, client) || goesOn
        }
    }

    private func carry(_ from: EngineSide, _ to: EngineSide) -> Bool {
        defer { from.outgoing = [] }
        to.incoming += from.outgoing
        return !from.outgoing.isEmpty
    }

    /// Makes the server send the response with its certificate from its next handshake on.
    func staple(_ response: [UInt8]) {
        let ssl = server.engine.ssl
        let copy = CRYPTO_malloc(response.count, nil, 0)
        copy?.copyMemory(from: response, byteCount: response.count)
        _ = csn_SSL_CTX_set_tlsext_status_cb(SSL_get_SSL_CTX(ssl)) { _, _ in SSL_TLSEXT_ERR_OK }
        SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, response.count, copy)
    }

    /// Makes the server request a certificate: by post-handshake authentication in TLS 1.3, by renegotiation in TLS
    /// 1.2.
    func askForCertificate() {
        let ssl = server.engine.ssl
        if SSL_version(ssl) == TLS1_3_VERSION {
            SSL_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_POST_HANDSHAKE, nil)
            SSL_verify_client_post_handshake(ssl)
        } else {
            SSL_clear_options(ssl, csn_SSL_OP_NO_RENEGOTIATION)
            SSL_set_verify(ssl, SSL_VERIFY_PEER, nil)
            SSL_renegotiate(ssl)
        }
        SSL_do_handshake(ssl)
    }
}
