// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import CountersignChallenges

/// One TLS connection in memory, without socket and event loop: takes and produces ciphertext and plaintext.
///
/// It does not decide about trust: a client's engine has the server's chain verified, keeps the verdict, and asks the
/// caller or continues, so that the caller can decide before it writes. It only withholds client certificates from a
/// server that is not trusted, unless the caller permits them. An error is final: every later call throws it again.
package final class TLSEngine {
    /// The result of a call.
    package enum Step: Equatable, Sendable {
        /// Complete; for reads and writes with the number of plaintext bytes.
        case done(Int)
        /// More input from the network is needed.
        case wantsInput
        /// The call must be repeated after ``answerCertificateRequest(with:)`` or ``answerTrustQuestion(with:)``.
        case suspended
        /// The peer has sent close_notify; there is nothing more to read.
        case inputClosed
    }

    enum Role {
        case client(TLSClientContext, host: String, alpn: [String])
        case server(TLSServerContext, speaksHTTP2: Bool)
    }

    private enum Question {
        case none
        case asked(CertificateRequest)
        case answered(Identity?)
    }

    /// Is called with bytes for the network during any other call.
    @exclusivity(unchecked) package var output: (UnsafeRawBufferPointer) -> Void = { _ in }
    /// The verdict on the server; nil before its chain has arrived, and on the server's side. In TLS 1.2 a stapled
    /// response that arrives later may amend it until ``serverTrustIsFinal``.
    package private(set) var serverTrust: ServerTrust?
    /// ``serverTrust`` is final for this handshake.
    package private(set) var serverTrustIsFinal = false
    /// The result of the handshake; nil before its end.
    package private(set) var summary: TLSSummary?
    /// The handshake is complete. Stored, because `summary != nil` copies the whole summary, which costs an intercepted
    /// request 17,400 instructions.
    @exclusivity(unchecked) package private(set) var isEstablished = false

    let ssl: OpaquePointer
    let role: Role
    @exclusivity(unchecked) private var failure: TLSError?
    private var question = Question.none
    var trustQuestion: TrustQuestion {
        didSet { asksAboutTrust = trustQuestion.isPending }
    }
    /// The caller must decide whether to proceed. Stored, because `trustQuestion.isPending` copies the question:
    /// computing it costs an intercepted request 2,300 instructions.
    @exclusivity(unchecked) package private(set) var asksAboutTrust = false
    /// How the verdict depends on revocation statuses.
    package let revocation: RevocationCheck
    /// The handshake waits for revocation statuses.
    package internal(set) var statusWait: StatusWait? {
        didSet { awaitsStatuses = statusWait != nil }
    }
    @exclusivity(unchecked) package private(set) var awaitsStatuses = false
    /// Statuses are requested once per handshake.
    var hasAskedForStatuses = false
    /// The last verdict depends on statuses that can be learned.
    private(set) var hasOpenQuestions = false
    package private(set) var shownIdentity: String?
    /// The stapled response of the session that was offered, and the verdict based on it.
    private var offeredSession: (staple: ChainVerifier.Staple, trust: ServerTrust)?
    private var renegotiations = 0
    private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    private var firstBytesSeen = 0

    /// A connection to `host`, which is sent as SNI unless it is an IP address. `alpn` lists the protocols to offer,
    /// the preferred one first. `session` comes from an earlier connection to the same host and is offered if its
    /// chain, with the stapled response of that time, is still trusted. With `asksAboutTrust` the engine suspends at a
    /// server that is not trusted. It also suspends while it waits for revocation statuses, as `revocation` says.
    package convenience init(
        client context: TLSClientContext, host: String, alpn: [String], session: TLSSession?,
        asksAboutTrust: Bool = false, revocation: RevocationCheck = .soft
    ) throws(TLSError) {
        try self.init(
            .client(context, host: host, alpn: alpn), context.ssl, asksAboutTrust: asksAboutTrust,
            revocation: revocation)
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

    /// A connection from a client. `speaksHTTP2`: selects `h2` if the client offers it.
    package convenience init(server context: TLSServerContext, speaksHTTP2: Bool = false) throws(TLSError) {
        try self.init(
            .server(context, speaksHTTP2: speaksHTTP2), context.ssl, asksAboutTrust: false, revocation: .off)
        SSL_set_accept_state(ssl)
        guard context.install(on: ssl) else {
            throw .drained(.configuration, "OpenSSL does not accept the server's certificate")
        }
    }

    private init(
        _ role: Role, _ context: SSLContext, asksAboutTrust: Bool, revocation: RevocationCheck
    ) throws(TLSError) {
        ERR_clear_error()
        guard let ssl = SSL_new(context.pointer) else { throw .drained(.configuration, "TLS connection") }
        self.ssl = ssl
        self.role = role
        trustQuestion = TrustQuestion(isWanted: asksAboutTrust)
        self.revocation = revocation
        guard SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque()) == 1,
            EngineBIO.attach(to: ssl, engine: self)
        else { throw .drained(.configuration, "TLS connection") }
    }

    deinit {
        // Without both close_notify alerts OpenSSL would make the session unusable for later connections.
        if failure == nil { SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        SSL_free(ssl)
    }

    // MARK: Verbs

    /// Makes `bytes` from the network available to the calls in `body`, and returns how many of them were consumed. The
    /// caller passes the rest again the next time.
    package func withInput(_ bytes: UnsafeRawBufferPointer, _ body: () -> Void) -> Int {
        input = bytes
        checkFirstBytes()
        body()
        let taken = bytes.count - input.count
        input = UnsafeRawBufferPointer(start: nil, count: 0)
        return taken
    }

    /// Continues the handshake. After ``Step/done(_:)`` there is a ``summary``.
    package func handshake() throws(TLSError) -> Step {
        let step = try step { SSL_do_handshake(ssl) }
        if case .done = step, summary == nil { try handshakeCompleted() }
        return step
    }

    /// Decrypts into `buffer`, which must not be empty. Only after the handshake.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> Step {
        try step { SSL_read(ssl, buffer.baseAddress, Int32(clamping: buffer.count)) }
    }

    /// Encrypts all of `bytes`, up to 2 GiB, or none. Only after the handshake. If the result is not ``Step/done(_:)``,
    /// the next call must begin with the same bytes.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> Step {
        guard bytes.count > 0 else { return .done(0) }
        return try step { SSL_write(ssl, bytes.baseAddress, Int32(clamping: bytes.count)) }
    }

    /// Answers the request that suspended the engine; nil declines it. The suspended call must be repeated.
    package func answerCertificateRequest(with identity: Identity?) {
        guard case .asked = question else { return }
        question = .answered(identity)
    }

    /// Answers the question that suspended the engine. The suspended call must be repeated.
    package func answerTrustQuestion(with answer: TrustAnswer) { trustQuestion.answered(answer) }

    /// `TLSv1.3` or `TLSv1.2`, as soon as the server has chosen, which is before its chain arrives.
    package var version: String { String(cString: SSL_get_version(ssl)) }

    /// Sends close_notify if the handshake is complete.
    package func closeOutput() {
        guard summary != nil, failure == nil, SSL_in_init(ssl) == 0, !isOutputClosed else { return }
        ERR_clear_error()
        SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// The stream from the network has ended. Returns the error for that; nil after close_notify or an earlier failure.
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

    /// The engine waits for an answer and needs no input before it has one.
    package var isSuspended: Bool {
        if case .asked = question { true } else { isHeld }
    }

    /// Nothing is sent: the caller must decide about the server, or the statuses of its certificates are awaited.
    var isHeld: Bool { asksAboutTrust || awaitsStatuses }

    /// The peer has sent close_notify.
    package var isInputClosed: Bool { SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

    /// The engine has sent close_notify.
    package var isOutputClosed: Bool { SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN != 0 }

    /// How many bytes of the input have not been consumed.
    package var unreadInputBytes: Int { input.count }

    /// How much plaintext is available without more input.
    package var pendingPlaintextBytes: Int { Int(SSL_pending(ssl)) }

    /// The session for a later connection; in TLS 1.3 nil before the server's ticket has arrived. Never the
    /// session of a connection on which an identity was sent.
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
        // SSL_get_error(3) requires an empty error queue. Peeking is cheaper than clearing, and the queue is almost
        // always empty.
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
            // A resumed handshake has no chain.
            if serverTrust == nil { serverTrust = offeredSession?.trust ?? judge([], staple: .absent, isLast: true) }
            verdictIsLast()
            if let selected, !offered.contains(selected) {
                throw fail(TLSError(.handshakeFailed, "the server chose \"\(selected)\", which was not offered"))
            }
        }
        isEstablished = true
        summary = TLSSummary(
            version: String(cString: SSL_get_version(ssl)),
            cipher: SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)).map { String(cString: $0) } ?? "",
            alpn: selected, serverTrust: serverTrust, trustAnswer: trustQuestion.answer,
            peerCertificate: SSL_get0_peer_certificate(ssl).map { Certificate(retaining: $0) },
            clientIdentity: shownIdentity, resumed: SSL_session_reused(ssl) == 1,
            verifiedClientChain: serverTrust == nil ? certificates(in: SSL_get0_verified_chain(ssl)) : [])
    }

    // MARK: Verdicts

    /// Finds and keeps the verdict. With `isLast`, only statuses can amend it later: the engine then waits for those
    /// that can be learned.
    func judge(_ chain: [Certificate], staple: ChainVerifier.Staple, isLast: Bool) -> ServerTrust? {
        guard case .client(let context, let host, _) = role else { return nil }
        var found = context.verdict(on: chain, host: host, staple: staple, check: revocation, isFinal: false)
        hasOpenQuestions = !found.questions.isEmpty
        if isLast, !isEstablished { statusWait = askForStatuses(found.questions, chain, staple, context) }
        if isLast, statusWait == nil {
            if revocation == .require {
                found = context.verdict(on: chain, host: host, staple: staple, check: revocation, isFinal: true)
            }
            verdictIsLast()
        }
        if !isEstablished { serverTrust = found.trust }
        return found.trust
    }

    func verdictIsLast() { serverTrustIsFinal = true }

    private func offer(_ session: TLSSession, of context: TLSClientContext) {
        SSL_set_session(ssl, session.pointer)
        let chain = certificates(in: SSL_get_peer_cert_chain(ssl))
        let trust = context.verdict(on: chain, host: session.host, staple: session.staple, check: revocation).trust
        if trust.isTrusted { offeredSession = (session.staple, trust) } else { SSL_set_session(ssl, nil) }
    }

    // MARK: Memory

    /// Copies input to OpenSSL and returns how many bytes, possibly 0.
    func takeInput(_ target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, input.count)
        guard count > 0 else { return 0 }
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
        input = UnsafeRawBufferPointer(rebasing: input[count...])
        return count
    }

    /// The first record must be a handshake or an alert of SSL 3.0 or later (RFC 8446 §5.1).
    private func checkFirstBytes() {
        for byte in input.prefix(2 - firstBytesSeen) {
            let isTLS = firstBytesSeen == 0 ? byte == SSL3_RT_HANDSHAKE || byte == SSL3_RT_ALERT : byte == 3
            guard isTLS else {
                fail(TLSError(.notTLS, "the peer does not speak TLS"))
                return
            }
            firstBytesSeen += 1
        }
    }

    // MARK: OpenSSL's callbacks

    /// The engine of the connection in a callback.
    static func of(_ ssl: OpaquePointer?) -> TLSEngine? {
        ssl.flatMap { SSL_get_ex_data($0, 0) }.map { Unmanaged<TLSEngine>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Suspends until there is an answer. Declines at once if the server is not trusted, unless the caller permits it.
    func serverAskedForCertificate() -> Int32 {
        guard serverStapleIsComplete() else { return 0 }
        if isHeld { return -1 }
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
            guard identity.isUsed(by: ssl) else {
                fail(.drained(.configuration, "OpenSSL does not accept the identity \"\(identity.name)\""))
                return 0
            }
            shownIdentity = identity.name
        }
        summary?.clientIdentity = shownIdentity
        return 1
    }

    /// From now on, OpenSSL overwrites decrypted bytes as soon as they have been read.
    package func cleansePlaintext() { SSL_set_options(ssl, csn_SSL_OP_CLEANSE_PLAINTEXT) }

    /// Allows a server one TLS 1.2 renegotiation. A client's first attempt is refused by OpenSSL, its second one ends
    /// the connection. TLS 1.3 has no renegotiation, and its messages after the handshake are not handshakes.
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
}
