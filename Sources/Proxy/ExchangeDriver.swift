// SPDX-License-Identifier: Apache-2.0

import Challenges
import Certificates
import HTTP1
import NIOCore
import NTLM
import SitePolicy
import Upstream

/// One request's trip: it owns a ``ChallengeExchange``, feeds it what happens and runs the one action that comes back.
///
/// The machine decides; this carries bytes. A response head is held until the machine has said what becomes of it: it is delivered
/// to the client as it came, or swallowed, and another round goes out. The request's body is kept meanwhile in a
/// ``ReplayBuffer``. Everything runs on the client connection's event loop.
final class ExchangeDriver {
    /// What goes out next, once a connection is ready for it.
    enum Step {
        case transmit(Authorization?, isOpening: Bool)
        case computeFirstToken(OfferKind, PasswordCredential)
    }

    enum Mode {
        /// Nothing has been sent, or a connection is being made.
        case preparing
        /// A round is out.
        case waiting
        /// A response is held while the machine, or whom it asked, thinks.
        case deciding
        /// A held response is being read to its end and dropped, so that its connection can serve the next round.
        case draining(Step, swallowedBytes: Int)
        case delivering
        case done
    }

    struct Held {
        let head: ResponseHead
        let framing: BodyFraming
        var pieces: [ByteBuffer] = []
        var ended = false
        /// The origin broke it off: what there is of it cannot be ended cleanly.
        var wasCut = false
        var trailers: FieldLines?
    }

    let client: ClientConnection
    let services: LoopServices
    let policy: Policy
    let head: RequestHead
    let target: RequestTarget
    let rule: SiteRule?
    /// The one leaf that will do, which the client has named.
    let pin: [UInt8]?
    /// On whose word the origin's certificate is taken: a guess until there is a connection.
    var trust: OriginTrust
    var key: UpstreamKey
    var exchange: ChallengeExchange
    var entry: AccessLog.Entry
    var mode = Mode.preparing

    var connection: OriginConnection?
    var held: Held?
    var ntlm: NTLMContext?
    /// The origin took an answer of ours.
    var wasAccepted = false
    /// The attempt that the breaker has permitted, until it is known how it ended.
    var attempt: Breaker.Key?
    /// What the caller supplied in the place of a refused credential.
    var supplied: PasswordCredential?
    /// How often the caller has been asked for one.
    var questionsAsked = 0
    /// The client speaks NTLM or Negotiate itself: its connection is its own.
    let clientBindsConnection: Bool
    /// Whether an answer of ours may be asked for at all.
    let mayBeAnswered: Bool
    /// The attempt to connect that is on its way.
    var door: TrustDoor?
    /// When the first challenge came, in seconds; nil before.
    var dialogueSince: UInt64?
    /// The challenge that was answered last, as far as it is kept.
    var lastChallenge: Held?

    // The request's body.
    var replay: ReplayBuffer
    var bodyHasEnded: Bool
    var bodyTrailers: FieldLines?
    /// The round that is out takes body pieces as they come.
    var streamsBody = false
    /// A piece came while the round that is out could not take it: that request will never be whole.
    var missesPieces = false

    // The response to the client.
    var outgoingFraming = BodyFraming.none
    var keepsClient = false
    var responseFields: FieldLines?
    /// What went out last, to be learned if it is accepted.
    var sentAuthorization: Authorization?
    var informationalCount = 0
    var waitingSince: UInt64
    var lastProgress: UInt64
    var hasRetried = false
    var identityRetry = IdentityRetry()
    /// The client's connection ends with the response.
    var closesClient = false
    var lastStep: Step?

    /// `pin` is the leaf's SHA-256 that the client has decided for, where it has.
    init(client: ClientConnection, head: RequestHead, target: RequestTarget, pin: [UInt8]?) {
        self.client = client
        self.head = head
        self.target = target
        self.pin = pin
        services = client.services
        let policy = services.shared.policy.current
        self.policy = policy

        var rule: SiteRule?
        if case .answer(let found) = policy.sites.verdict(for: target.origin) { rule = found }
        self.rule = rule

        let authorization = head.fields.value(of: .authorization)
        if authorization.map(Self.bindsConnection) == true { client.authenticatedItself.insert(target.origin) }
        // NTLM speaks for the connection: what the client sends on it afterwards is its own too, without the field.
        clientBindsConnection = client.authenticatedItself.contains(target.origin)
        let clientAuthorizes = authorization != nil || clientBindsConnection
        mayBeAnswered = rule != nil && !clientAuthorizes

        var trust = OriginTrust.verified
        if let pin {
            let now = services.shared.wallClock()
            let standing = rule == nil ? nil : policy.standing(for: target.origin, leaf: pin, now: now)
            trust = standing.map { .standing($0) } ?? .client(leaf: pin)
        }
        self.trust = trust
        key = Self.key(trust, rule: mayBeAnswered ? rule : nil, origin: target.origin, policy: policy, client: client)
        exchange = ChallengeExchange(
            Self.terms(
                key, rule: rule, clientAuthorizes: clientAuthorizes, head: head, target: target, policy: policy,
                client: client))

        bodyHasEnded = head.framing == .none
        replay = ReplayBuffer(
            keeps: mayBeAnswered && trust.answers, limitBytes: services.configuration.replayLimitBytes)
        waitingSince = services.now
        lastProgress = services.now
        let decision: AccessLog.Entry.Decision
        if case .intercepted = client.door { decision = .intercept } else { decision = .forward }
        entry = AccessLog.Entry(
            startedAt: WallClock.now(), id: services.shared.accessLog?.nextID() ?? 0, client: client.identity,
            method: head.methodText, site: target.origin.description, decision: decision, rule: rule?.location)
    }

    private static func bindsConnection(_ authorization: String) -> Bool {
        let scheme = authorization.prefix { $0 != " " }.lowercased()
        return scheme == "ntlm" || scheme == "negotiate"
    }

    // MARK: The machine

    func start() {
        run(exchange.started())
    }

    /// Runs one action; each ends in an event for the machine, now or later.
    func run(_ action: ChallengeExchange.Action) {
        switch action {
        case .send(let authorization):
            prepare(.transmit(authorization, isOpening: false))
        case .sendOpening(let authorization):
            prepare(.transmit(authorization, isOpening: true))
        case .ask(let challenge):
            mode = .deciding
            if held != nil, dialogueSince == nil { dialogueSince = services.now }
            decide(challenge)
        case .computeToken(let kind, let credential, let serverToken):
            if let serverToken {
                run(authenticate(serverToken))
            } else if let reason = obstacle(to: kind, credential) {
                // Found out while the 401 is still held, so that it can go back.
                run(exchange.tokenFailed(reason: reason))
            } else {
                prepare(.computeFirstToken(kind, credential))
            }
        case .deliver(let outcome):
            conclude(outcome)
            if case .rejected(let kind, let credential, _) = outcome,
                asksAgain(after: credential, kind, otherwise: { [self] in deliverResult() })
            {
                return
            }
            deliverResult()
        case .fail(let reason):
            endAttempt(.inconclusive)
            respond(OwnResponse(status: 502, detail: reason, proxyError: "connection_terminated"))
        case .wait:
            break
        }
    }

    private func deliverResult() {
        guard finalTokenIsRight() else {
            return respond(
                OwnResponse(
                    status: 502, detail: "the origin's last authentication token is wrong",
                    proxyError: "http_protocol_error"))
        }
        deliver()
    }

    // MARK: Connections

    /// Gets a connection into the state that `step` needs: the held response read to its end, or another connection.
    func prepare(_ step: Step) {
        if held != nil, replay.hasLostItsStart {
            return run(
                exchange.replayImpossible(
                    reason: "the request body is larger than the \(replay.limitBytes) bytes that can be sent again"))
        }
        if let held, !held.ended, let connection, bodyIsOut {
            mode = .draining(step, swallowedBytes: held.pieces.reduce(0) { $0 + $1.readableBytes })
            lastChallenge = held
            self.held?.pieces = []
            return connection.resumeReading()
        }
        drained(step)
    }

    /// The request that is answered was sent whole, so that the connection behind it may be used again.
    var bodyIsOut: Bool { connection?.requestIsWhole ?? true }

    func drained(_ step: Step) {
        if let held, held.ended, !held.wasCut { lastChallenge = held }
        held = nil
        mode = .preparing
        if let connection, connection.isReusable { return perform(step, on: connection) }
        if exchange.requiresSameConnection {
            dropConnection()
            // Nothing of this step has gone out.
            return run(exchange.connectionLost(requestMayRepeat: true))
        }
        acquire(step)
    }

    func dropConnection() {
        connection?.close()
        connection = nil
    }

    func perform(_ step: Step, on connection: OriginConnection) {
        switch step {
        case .computeFirstToken(let kind, let credential):
            run(negotiate(kind, credential, on: connection))
        case .transmit(let authorization, let isOpening):
            lastStep = step
            transmit(authorization, isOpening: isOpening, on: connection)
        }
    }

    // MARK: Sending

    /// What is left of `Max-Forwards` on TRACE and OPTIONS (RFC 9110 §7.6.2); nil where there is none.
    private var maxForwards: UInt? {
        guard head.method == .trace || head.method == .options, let value = head.fields.value(of: .maxForwards),
            let left = UInt(value)
        else { return nil }
        return left == 0 ? 0 : left - 1
    }

    private func transmit(_ authorization: Authorization?, isOpening: Bool, on connection: OriginConnection) {
        let sendsNoBody = isOpening || head.framing == .none
        let isUpgrade = head.upgrade != nil && !isOpening
        let forwarding = RequestForwarding(
            target: target.path, host: target.origin.authority,
            framing: isOpening && head.framing != .none ? .length(0) : head.framing,
            authorization: authorization?.fieldValue, via: services.shared.via,
            connection: isUpgrade ? .upgrade : .keepAlive, keepsExpect: !isOpening, maxForwards: maxForwards)
        if clientBindsConnection || isOpening { connection.isAuthenticated = true }
        sentAuthorization = authorization
        if authorization != nil { entry.rounds += 1 }
        mode = .waiting
        waitingSince = services.now
        lastProgress = services.now
        connection.send(head: head.forwarded(forwarding), method: head.method)
        streamsBody = !sendsNoBody
        missesPieces = false
        if sendsNoBody {
            connection.endRequest()
        } else {
            for piece in replay.pieces { sendPiece(piece, on: connection) }
            replay.allSent()
            if bodyHasEnded { sendBodyEnd(on: connection) }
            pace()
        }
        connection.flush()
    }

    private func sendPiece(_ piece: ByteBuffer, on connection: OriginConnection) {
        guard head.framing == .chunked else { return connection.send(body: piece) }
        connection.send(body: ByteBuffer(bytes: ChunkedEncoding.header(byteCount: piece.readableBytes)))
        connection.send(body: piece)
        connection.send(body: ByteBuffer(bytes: ChunkedEncoding.lineEnd))
    }

    private func sendBodyEnd(on connection: OriginConnection) {
        if head.framing == .chunked {
            connection.send(body: ByteBuffer(bytes: ChunkedEncoding.end(trailers: bodyTrailers, head: head.fields)))
        }
        connection.endRequest()
    }

    func bodyReceived(_ piece: ByteBuffer) {
        lastProgress = services.now
        if case .done = mode { return }
        let sends = streamsBody && isSending
        if streamsBody, !sends { missesPieces = true }
        replay.append(piece, sent: sends)
        if sends, let connection { sendPiece(piece, on: connection) }
        pace()
    }

    func bodyEnded(trailers: FieldLines?) {
        bodyHasEnded = true
        bodyTrailers = trailers
        waitingSince = services.now
        if streamsBody, isSending, let connection {
            sendBodyEnd(on: connection)
            connection.flush()
        }
    }

    private var isSending: Bool {
        switch mode {
        case .waiting, .delivering: connection != nil && !missesPieces
        case .preparing, .deciding, .draining, .done: false
        }
    }

    /// Holds the client's body while the origin is slow, or while nothing can be sent and enough is kept.
    func pace() {
        let sends = isSending && streamsBody
        // What waits for a flush would keep the connection from ever being writable again.
        if sends, let connection, !connection.isWritable { connection.flush() }
        let mustWait = sends ? !(connection?.isWritable ?? true) : replay.isFull
        if mustWait { client.pauseBody() } else { client.resumeBody() }
    }

    func clientReadCompleted() {
        connection?.flush()
    }

    // MARK: Ends

    /// The client went away, or what it sent cannot be trusted.
    func clientGone() {
        if case .done = mode { return }
        mode = .done
        door?.cancel()
        endAttempt(.inconclusive)
        dropConnection()
        log(status: entry.status == 0 ? 499 : entry.status)
    }

    func secondPassed(now: UInt64) {
        let limits = services.configuration
        if let dialogueSince, isInDialogue, now > dialogueSince + limits.dialogueSeconds { return endDialogue() }
        switch mode {
        case .waiting where bodyIsOut:
            if now > waitingSince + limits.originTimeoutSeconds { timedOut(after: limits.originTimeoutSeconds) }
        case .waiting, .delivering, .draining:
            if now > lastProgress + limits.bodyIdleSeconds {
                if case .delivering = mode { return abort() }
                timedOut(after: limits.bodyIdleSeconds)
            }
        case .preparing, .deciding, .done:
            break
        }
    }

    /// A challenge has come, and the request with the last answer is not out: that one may take its time, like any other.
    private var isInDialogue: Bool {
        switch mode {
        case .preparing, .deciding, .draining:
            true
        case .waiting:
            if case .transmit(_, isOpening: true)? = lastStep { true } else { false }
        case .delivering, .done:
            false
        }
    }

    /// The client gets the challenge that was answered last, where it is still there.
    private func endDialogue() {
        let reason = "the dialogue took longer than \(services.configuration.dialogueSeconds) seconds"
        if case .draining = mode {
            held = lastChallenge
        } else if held == nil {
            door?.cancel()
            dropConnection()
            held = lastChallenge
        }
        endAttempt(.inconclusive)
        guard let held, held.ended || connection != nil else {
            return respond(OwnResponse(status: 504, detail: reason, proxyError: "http_response_timeout"))
        }
        entry.status = held.head.status
        entry.reason = reason
        deliver()
        client.flush()
    }

    private func timedOut(after seconds: UInt64) {
        dropConnection()
        endAttempt(.inconclusive)
        respond(
            OwnResponse(
                status: 504, detail: "the origin sent nothing for \(seconds) seconds",
                proxyError: "http_response_timeout"))
    }

    /// The response is cut: the client must see that.
    func abort() {
        mode = .done
        endAttempt(.inconclusive)
        dropConnection()
        log(status: entry.status)
        client.abortResponse(needsReset: outgoingFraming == .untilClose)
    }

    /// A response of our own in place of the origin's.
    func respond(_ response: OwnResponse) {
        if case .done = mode { return }
        mode = .done
        dropConnection()
        entry.reason = response.detail
        entry.status = response.status
        let keeps = head.keepsAlive && bodyHasEnded && !services.isDraining && !closesClient
        client.write(response.bytes(keepAlive: keeps, to: head.method))
        client.flush()
        log(status: response.status)
        client.responseFinished(keepAlive: keeps)
    }

    func log(status: Int) {
        guard let accessLog = services.shared.accessLog else { return }
        entry.client = client.identity
        entry.status = status
        let now = WallClock.now()
        entry.durationMilliseconds =
            (now.seconds - entry.startedAt.seconds) * 1000 + now.milliseconds - entry.startedAt.milliseconds
        accessLog.write(entry)
    }
}
