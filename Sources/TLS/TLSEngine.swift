// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// One TLS connection over memory: bytes of the network in, bytes for the network out, plaintext beside. No socket,
/// no event loop.
///
/// It never decides about trust: a client's engine has the server's chain judged, keeps the verdict, and asks the
/// caller or goes on, so that the caller can decide before it writes. Only a client certificate is withheld from a
/// server that is not trusted, unless the caller says otherwise. An error is final: every later call throws it again.
package final class TLSEngine {
    /// How far a call got.
    package enum Step: Equatable, Sendable {
        /// It is done; for reads and writes the number of plaintext bytes.
        case done(Int)
        /// It goes on when more has come from the network.
        case wantsInput
        /// It goes on after ``answerCertificateRequest(with:)`` or ``answerTrustQuestion(with:)``.
        case suspended
        /// The peer's close_notify came; there is nothing more to read.
        case inputClosed
    }

    private enum Role {
        case client(TLSClientContext, host: String, alpn: [String])
        case server(TLSServerContext)
    }

    private enum Question {
        case none
        case asked(CertificateRequest)
        case answered(Identity?)
    }

    /// Gets the bytes for the network, during any other call.
    package var output: (UnsafeRawBufferPointer) -> Void {
        get { sink }
        set { sink = newValue }
    }
    private var sink: (UnsafeRawBufferPointer) -> Void = { _ in }
    /// The verdict on the server; nil before its chain came, and on the server's side. Under TLS 1.2 a stapled response
    /// that comes later may amend it until ``serverTrustIsFinal``.
    package private(set) var serverTrust: ServerTrust?
    /// No further finding of this handshake will change ``serverTrust``.
    package private(set) var serverTrustIsFinal = false
    /// What the handshake came to; nil before its end.
    package private(set) var summary: TLSSummary? {
        didSet { hasSummary = summary != nil }
    }
    /// The handshake is over.
    package var isEstablished: Bool { hasSummary }
    /// Where only the class sees it, the compiler knows of every access, and leaves out the check at run time that no two overlap.
    private var hasSummary = false

    let ssl: OpaquePointer
    private let role: Role
    private var failure: TLSError?
    private var question = Question.none
    var trustQuestion: TrustQuestion {
        didSet { asksAboutTrust = trustQuestion.isPending }
    }
    /// The caller is to say whether to go on.
    private(set) var asksAboutTrust = false
    private(set) var shownIdentity: String?
    /// The staple of the session that was offered, and the verdict found with it.
    private var offeredSession: (staple: ChainVerifier.Staple, trust: ServerTrust)?
    private var renegotiations = 0
    private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    private var firstBytesSeen = 0

    /// A connection to `host`, which is sent as SNI unless it is an IP address. `alpn` names the protocols to offer,
    /// the best first; `session` is one of an earlier connection to the same host, which is offered while its chain,
    /// with the stapled response that came then, still is trusted. With `asksAboutTrust` the engine suspends on a
    /// server that is not trusted.
    package convenience init(
        client context: TLSClientContext, host: String, alpn: [String], session: TLSSession?,
        asksAboutTrust: Bool = false
    ) throws(TLSError) {
        try self.init(.client(context, host: host, alpn: alpn), context.ssl, asksAboutTrust: asksAboutTrust)
        SSL_set_connect_state(ssl)
        if !isIPAddress(host), csn_SSL_set_tlsext_host_name(ssl, host) != 1 {
            throw .drained(.configuration, "server name \"\(host)\"")
        }
        let protocols = try ApplicationProtocols.encode(alpn)
        if !protocols.isEmpty, SSL_set_alpn_protos(ssl, protocols, UInt32(protocols.count)) != 0 {
            throw .drained(.configuration, "application protocols \(alpn)")
        }
        if let session, session.host == host { offer(session, of: context) }
    }

    /// A connection from a client.
    package convenience init(server context: TLSServerContext) throws(TLSError) {
        try self.init(.server(context), context.ssl, asksAboutTrust: false)
        SSL_set_accept_state(ssl)
        guard context.install(on: ssl) else { throw .drained(.configuration, "the server's certificate") }
    }

    private init(_ role: Role, _ context: SSLContext, asksAboutTrust: Bool) throws(TLSError) {
        ERR_clear_error()
        guard let ssl = SSL_new(context.pointer) else { throw .drained(.configuration, "TLS connection") }
        self.ssl = ssl
        self.role = role
        trustQuestion = TrustQuestion(isWanted: asksAboutTrust)
        guard SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque()) == 1,
            EngineBIO.attach(to: ssl, engine: self)
        else { throw .drained(.configuration, "TLS connection") }
    }

    deinit {
        // Freed without both close_notify, OpenSSL would make the session unfit for a later connection.
        if failure == nil { SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        SSL_free(ssl)
    }

    // MARK: Verbs

    /// Lends `bytes` from the network to the calls in `body`; gives how many of them were taken. The rest is to be
    /// lent again.
    package func withInput(_ bytes: UnsafeRawBufferPointer, _ body: () -> Void) -> Int {
        input = bytes
        checkFirstBytes()
        body()
        let taken = bytes.count - input.count
        input = UnsafeRawBufferPointer(start: nil, count: 0)
        return taken
    }

    /// Goes on with the handshake; ``Step/done(_:)`` when it is over and ``summary`` is there.
    package func handshake() throws(TLSError) -> Step {
        let step = try step { SSL_do_handshake(ssl) }
        if case .done = step, summary == nil { try handshakeCompleted() }
        return step
    }

    /// Decrypts into `buffer`, which must not be empty. Only after the handshake.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> Step {
        try step { SSL_read(ssl, buffer.baseAddress, Int32(clamping: buffer.count)) }
    }

    /// Encrypts `bytes`, all or none of them, up to 2 GiB. Only after the handshake. What was not done is to be
    /// written again with at least the same bytes.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> Step {
        guard bytes.count > 0 else { return .done(0) }
        return try step { SSL_write(ssl, bytes.baseAddress, Int32(clamping: bytes.count)) }
    }

    /// Answers the request that suspended the engine; nil: without a certificate. The call that was suspended is to
    /// be made again.
    package func answerCertificateRequest(with identity: Identity?) {
        guard case .asked = question else { return }
        question = .answered(identity)
    }

    /// Answers the question that suspended the engine. The call that was suspended is to be made again.
    package func answerTrustQuestion(with answer: TrustAnswer) { trustQuestion.answered(answer) }

    /// `TLSv1.3` or `TLSv1.2`, once the server has chosen; its chain comes after that.
    package var version: String { String(cString: SSL_get_version(ssl)) }

    /// Sends close_notify once the handshake is over.
    package func closeOutput() {
        guard summary != nil, failure == nil, SSL_in_init(ssl) == 0, !isOutputClosed else { return }
        ERR_clear_error()
        SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// The network's stream is over: what that means, or nil if close_notify came before or the engine has failed
    /// already.
    package func inputEnded() -> TLSError? {
        guard failure == nil, !isInputClosed else { return nil }
        let place = summary == nil ? "in the handshake" : "without close_notify"
        return TLSError(.truncated, "the peer closed the connection \(place)")
    }

    // MARK: State

    /// The request that suspends the engine.
    package var certificateRequest: CertificateRequest? {
        if case .asked(let request) = question { request } else { nil }
    }

    /// The verdict that suspends the engine.
    package var unansweredTrust: ServerTrust? { trustQuestion.pending }

    /// An answer is waited for; until then there is no use for more input.
    package var isSuspended: Bool {
        if case .asked = question { true } else { asksAboutTrust }
    }

    /// The peer's close_notify came.
    package var isInputClosed: Bool { SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

    /// Our close_notify was sent.
    package var isOutputClosed: Bool { SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN != 0 }

    /// The lent bytes that were not taken yet.
    package var unreadInputBytes: Int { input.count }

    /// Plaintext that is there without more input.
    package var pendingPlaintextBytes: Int { Int(SSL_pending(ssl)) }

    /// The session for a later connection; under TLS 1.3 there is none before the server's ticket came. Never one of
    /// a connection on which an identity was shown.
    package var session: TLSSession? {
        guard case .client(_, let host, _) = role, isEstablished, failure == nil, shownIdentity == nil,
            let pointer = SSL_get1_session(ssl)
        else { return nil }
        guard SSL_SESSION_is_resumable(pointer) == 1 else {
            SSL_SESSION_free(pointer)
            return nil
        }
        let staple = summary?.resumed == true ? offeredSession?.staple ?? .absent : receivedStaple
        return TLSSession(adopting: pointer, host: host, staple: staple)
    }

    // MARK: Steps

    private func step(_ operation: () -> Int32) throws(TLSError) -> Step {
        if let failure { throw failure }
        if isSuspended { return .suspended }
        if !isEstablished, let refusal = refuseLate() { throw fail(refusal) }
        // SSL_get_error looks at what is in the queue (its man page); most of the time nothing is.
        if ERR_peek_error() != 0 { ERR_clear_error() }
        let result = operation()
        if let failure {
            ERR_clear_error()
            throw failure
        }
        if result > 0 { return .done(Int(result)) }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .wantsInput
        case SSL_ERROR_WANT_WRITE: return isSuspended ? .suspended : .wantsInput
        case SSL_ERROR_WANT_X509_LOOKUP, SSL_ERROR_WANT_RETRY_VERIFY: return .suspended
        case SSL_ERROR_ZERO_RETURN: return .inputClosed
        default:
            throw fail(
                isEstablished
                    ? .drained(.protocolViolation, "TLS connection broken")
                    : .drained(.handshakeFailed, "TLS handshake failed"))
        }
    }

    @discardableResult
    func fail(_ error: TLSError) -> TLSError {
        if let failure { return failure }
        failure = error
        return error
    }

    private func handshakeCompleted() throws(TLSError) {
        let selected = selectedProtocol
        if case .client(_, _, let offered) = role {
            // A resumed handshake shows no chain.
            if serverTrust == nil { serverTrust = offeredSession?.trust ?? judge([], staple: .absent, isLast: true) }
            verdictIsLast()
            if let selected, !offered.contains(selected) {
                throw fail(TLSError(.handshakeFailed, "the server chose \"\(selected)\", which was not offered"))
            }
        }
        summary = TLSSummary(
            version: String(cString: SSL_get_version(ssl)),
            cipher: SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)).map { String(cString: $0) } ?? "",
            alpn: selected, serverTrust: serverTrust, trustAnswer: trustQuestion.answer,
            peerCertificate: SSL_get0_peer_certificate(ssl).map { Certificate(retaining: $0) },
            clientIdentity: shownIdentity, resumed: SSL_session_reused(ssl) == 1,
            verifiedClientChain: serverTrust == nil ? certificates(in: SSL_get0_verified_chain(ssl)) : [])
    }

    private var selectedProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &length)
        return length == 0
            ? nil : String(decoding: UnsafeBufferPointer(start: start, count: Int(length)), as: UTF8.self)
    }

    // MARK: Verdicts

    /// Finds and keeps the verdict; `isLast`: nothing more will come that could amend it.
    func judge(_ chain: [Certificate], staple: ChainVerifier.Staple, isLast: Bool) -> ServerTrust? {
        guard case .client(let context, let host, _) = role else { return nil }
        let trust = context.verdict(on: chain, host: host, staple: staple)
        if !isEstablished { serverTrust = trust }
        if isLast { verdictIsLast() }
        return trust
    }

    func verdictIsLast() { serverTrustIsFinal = true }

    private func offer(_ session: TLSSession, of context: TLSClientContext) {
        SSL_set_session(ssl, session.pointer)
        let chain = certificates(in: SSL_get_peer_cert_chain(ssl))
        let trust = context.verdict(on: chain, host: session.host, staple: session.staple)
        if trust.isTrusted { offeredSession = (session.staple, trust) } else { SSL_set_session(ssl, nil) }
    }

    // MARK: Memory

    /// Moves lent bytes to OpenSSL; 0: there are none.
    func takeInput(_ target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, input.count)
        guard count > 0 else { return 0 }
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
        input = UnsafeRawBufferPointer(rebasing: input[count...])
        return count
    }

    /// The first record is a handshake or an alert of SSL 3.0 or later (RFC 8446 §5.1).
    private func checkFirstBytes() {
        for byte in input.prefix(2 - firstBytesSeen) {
            let isTLS = firstBytesSeen == 0 ? byte == SSL3_RT_HANDSHAKE || byte == SSL3_RT_ALERT : byte == 3
            guard isTLS else {
                fail(TLSError(.notTLS, "what the peer sent is not TLS"))
                return
            }
            firstBytesSeen += 1
        }
    }

    // MARK: OpenSSL's questions

    /// The engine that a callback is about.
    static func of(_ ssl: OpaquePointer?) -> TLSEngine? {
        ssl.flatMap { SSL_get_ex_data($0, 0) }.map { Unmanaged<TLSEngine>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Suspends until there is an answer; a server that is not trusted gets none, at once, unless the caller said
    /// otherwise.
    func serverAskedForCertificate() -> Int32 {
        guard serverStapleIsComplete() else { return 0 }
        if asksAboutTrust { return -1 }
        switch question {
        case .asked:
            return -1
        case .none:
            guard let trust = serverTrust, trustQuestion.permitsIdentity(for: trust) else { return show(nil) }
            question = .asked(CertificateRequest(of: ssl, isPostHandshake: isEstablished))
            return -1
        case .answered(let identity):
            question = .none
            return show(identity)
        }
    }

    private func show(_ identity: Identity?) -> Int32 {
        SSL_certs_clear(ssl)
        shownIdentity = nil
        if let identity {
            let used = withStack(of: identity.chain.dropFirst()) { issuers in
                identity.leaf.withX509 { leaf in
                    identity.key.withPKEY { SSL_use_cert_and_key(ssl, leaf, $0, issuers, 1) }
                }
            }
            guard used == 1 else {
                fail(.drained(.configuration, "identity \"\(identity.name)\" not taken"))
                return 0
            }
            shownIdentity = identity.name
        }
        summary?.clientIdentity = shownIdentity
        return 1
    }

    /// Allows a server one TLS 1.2 renegotiation, and a client none but one vain try. TLS 1.3 has none, and its
    /// messages after the handshake are no handshakes.
    func handshakePassed(point: Int32) {
        guard isEstablished, SSL_version(ssl) < TLS1_3_VERSION else { return }
        if point == SSL_CB_HANDSHAKE_START {
            renegotiations += 1
            if renegotiations > 1 {
                fail(TLSError(.renegotiationRefused, "the peer wants to renegotiate a second time"))
            }
        } else if point == SSL_CB_HANDSHAKE_DONE {
            SSL_set_options(ssl, csn_SSL_OP_NO_RENEGOTIATION)
        }
    }

    /// Holds a client to the name that is served (RFC 6066 §3).
    func clientSaidHello(alert: UnsafeMutablePointer<Int32>?) -> Int32 {
        guard case .server(let context) = role, let expected = context.serverName else {
            return SSL_CLIENT_HELLO_SUCCESS
        }
        switch ServerName(inHelloOf: ssl) {
        case .name(let name) where name.lowercased() == expected:
            return SSL_CLIENT_HELLO_SUCCESS
        case .name(let name):
            fail(
                TLSError(.serverNameMismatch(name), "the client asked for \"\(name)\" where \"\(expected)\" is served"))
        case .missing:
            fail(
                TLSError(.serverNameMismatch(""), "the client asked for no server name where \"\(expected)\" is served")
            )
        case .malformed:
            fail(TLSError(.serverNameMismatch(""), "the client's server name is malformed"))
        }
        alert?.pointee = SSL_AD_UNRECOGNIZED_NAME
        return SSL_CLIENT_HELLO_ERROR
    }
}
