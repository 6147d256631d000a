// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCertificates
import CountersignHTTP1
import NIOCore
import CountersignSitePolicy
import CountersignUpstream

/// One request's trip: it owns a ``ExchangeMachine``, feeds it what happens and runs the one action that comes back.
///
/// The machine decides; this carries bytes. A response head is held until the machine has said what becomes of it: it is delivered
/// to the client as it came, or swallowed, and another round goes out. The request's body is kept meanwhile in a
/// ``ReplayBuffer``. Everything runs on the client connection's event loop.
final class ExchangeDriver {
    /// What goes out next, once a connection is ready for it.
    enum Step {
        case transmit(AuthorizationField?, isOpening: Bool)
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

    let client: ClientConnection
    let route: Route
    let head: RequestHead
    /// What the origin is asked for.
    let path: ArraySlice<UInt8>
    /// The one leaf that will do, which the client has named.
    let pin: [UInt8]?
    /// On whose word the origin's certificate is taken: a guess until there is a connection.
    var trust: TrustOutcome
    /// Where the connections wait that this exchange may use.
    var slot: UpstreamPool.Slot
    var exchange: ExchangeMachine
    /// What ``exchange`` was at first: it has been started.
    var prepared: Route.PreparedExchange
    let started: AccessLog.Start?
    var entry = AccessLog.Outcome()
    var mode = Mode.preparing

    var connection: OriginConnection?
    var held: BufferedResponse?
    /// Nil until there is something to keep in it.
    private(set) var dialogue: Dialogue?
    /// The origin took an answer of ours.
    var wasAccepted = false
    /// The client speaks NTLM or Negotiate itself: its connection is its own.
    let clientBindsConnection: Bool
    /// Whether an answer of ours may be asked for at all.
    let mayBeAnswered: Bool
    /// The attempt to connect that is on its way.
    var trustEvaluation: TrustEvaluation?

    // The request's body.
    var replay: ReplayBuffer
    var bodyHasEnded: Bool
    var bodyTrailers: FieldLines?
    /// The round that is out takes body pieces as they come.
    var streamsBody = false
    /// A round is being written: of writability it may hear, but the body goes on behind it.
    var isTransmitting = false
    /// A piece came while the round that is out could not take it: that request will never be whole.
    var missesPieces = false

    // The response to the client.
    var outgoingFraming = BodyFraming.none
    var keepsClient = false
    /// Of a response whose trailers are forwarded.
    var responseFields: FieldLines?
    /// What went out last, to be learned if it is accepted.
    var sentAuthorization: AuthorizationField?
    var informationalCount = 0
    var waitingSince: UInt64
    var lastProgress: UInt64
    var hasRetried = false
    var identityRetry = IdentityRetry()
    /// The client's connection ends with the response.
    var closesClient = false
    var lastStep: Step?

    var services: LoopServices { client.services }
    var origin: Origin { route.origin }
    var policy: Policy { route.policy }
    var rule: SiteRule? { route.rule }

    /// `pin` is the leaf's SHA-256 that the client has decided for, where it has.
    init(client: ClientConnection, head: consuming RequestHead, route: Route, path: ArraySlice<UInt8>, pin: [UInt8]?) {
        self.client = client
        self.route = route
        self.path = path
        self.pin = pin
        let services = client.services

        let authorization = head.fields.value(of: .authorization)
        if authorization.map(Self.bindsConnection) == true { client.authenticates(itselfTo: route.origin) }
        // NTLM speaks for the connection: what the client sends on it afterwards is its own too, without the field.
        clientBindsConnection = client.hasAuthenticated(itselfTo: route.origin)
        let clientAuthorizes = authorization != nil || clientBindsConnection
        mayBeAnswered = route.isListed && !clientAuthorizes

        var trust = TrustOutcome.verified
        if let pin {
            let now = services.shared.wallClock()
            let exception = route.isListed ? route.policy.trustException(for: route.origin, leaf: pin, now: now) : nil
            trust = exception.map { .exception($0) } ?? .client(leaf: pin)
        }
        self.trust = trust
        let slot = route.slot(under: trust, mayBeAnswered: mayBeAnswered)
        self.slot = slot
        let hasBody = head.hasBody
        let prepared = Self.begin(
            slot, route, clientAuthorizes: clientAuthorizes, hasBody: hasBody, path: path, client: client)
        self.prepared = prepared
        exchange = prepared.exchange

        bodyHasEnded = !hasBody
        replay = ReplayBuffer(
            keeps: mayBeAnswered && trust.answers, limitBytes: services.configuration.replayLimitBytes)
        waitingSince = services.now
        lastProgress = services.now
        started = services.shared.accessLog?.start()
        self.head = head
    }

    private static func bindsConnection(_ authorization: String) -> Bool {
        let scheme = authorization.prefix { $0 != " " }.lowercased()
        return scheme == "ntlm" || scheme == "negotiate"
    }

    // MARK: The machine

    func start() {
        run(prepared.action)
    }

    /// Runs one action; each ends in an event for the machine, now or later.
    func run(_ action: ExchangeMachine.Action) {
        switch action {
        case .send(let authorization):
            prepare(.transmit(authorization, isOpening: false))
        case .sendOpening(let authorization):
            prepare(.transmit(authorization, isOpening: true))
        case .ask(let challenge):
            mode = .deciding
            if held != nil, dialogue?.since == nil { beginDialogue().since = services.now }
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

    func beginDialogue() -> Dialogue {
        if let dialogue { return dialogue }
        let new = Dialogue()
        dialogue = new
        return new
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
            beginDialogue().lastChallenge = held
            return connection.resumeReading()
        }
        drained(step)
    }

    /// The request that is answered was sent whole, so that the connection behind it may be used again.
    var bodyIsOut: Bool { connection?.requestIsWhole ?? true }

    func drained(_ step: Step) {
        if let held, held.ended, !held.wasCut { beginDialogue().lastChallenge = held }
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
}
