// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignHTTP1
import CountersignSitePolicy
import CountersignUpstream
import NIOCore

/// One request and its response: the driver reports events to an `AnswerDialogue` and runs the one action that the
/// dialogue returns.
///
/// The dialogue decides, the driver does the I/O. A response is buffered until the dialogue has decided: it is
/// delivered to the client, or it is discarded and another request goes out on the client's behalf. The client is an
/// ``ExchangeClient``, the origin an `OriginStream`; neither says which version of HTTP it speaks.
///
/// The state is divided by responsibility: ``ConnectionAcquisition`` has the origin connection and the trust in it,
/// ``RequestBodyRelay`` the request's content, ``ResponseDelivery`` the response that waits for a decision,
/// ``ExchangeRecord`` the log entry, and ``Dialogue`` the state that only a challenged exchange needs. Everything runs
/// on the client connection's event loop.
final class ExchangeDriver {
    /// The next step of the exchange, once a connection is ready for it.
    enum Step {
        case transmit(Answer?, isOpening: Bool)
        indirect case openDialogue(TokenRequest)

        /// Whether all of the request's content must be here first.
        var needsContent: Bool { if case .transmit(let answer?, _) = self { answer.needsContent } else { false } }
    }

    enum Mode {
        /// Nothing has been sent, or a connection is being made.
        case preparing
        /// A request is out.
        case waiting
        /// A response is buffered until the machine or a delegate decides.
        case deciding
        /// The rest of a buffered response is read and discarded, so that its connection can carry the next request.
        /// Indirect, because the mode is read 17 times per request, and copying a payload in place costs 45
        /// instructions each time.
        indirect case draining(Step, swallowedBytes: Int)
        case delivering
        case done
    }

    let client: any ExchangeClient
    let session: ClientSession
    let services: LoopServices
    /// Changes only if the first parent on the route is not reached, or opens no tunnel.
    @exclusivity(unchecked) private(set) var route: Route
    let head: RequestHead
    /// The request target for the origin: path and query, or `*`.
    let path: ArraySlice<UInt8>

    // The conversation with the origin.

    /// No call of the dialogue re-enters it through the driver, so the exclusivity checks at run time are disabled:
    /// three accesses per request, at 65 instructions each.
    @exclusivity(unchecked) var answers: AnswerDialogue
    /// The initial state of the machine of ``answers``, and its first action.
    private var prepared: Route.PreparedExchange
    var mode = Mode.preparing
    /// Nil until there is something to keep in it.
    private(set) var dialogue: Dialogue?
    /// Nil unless the request has large content that may have to be sent again.
    let upload: Upload?
    /// The origin accepted an answer of the proxy's.
    var wasAccepted = false
    var lastStep: Step?
    /// The step for whose answer the rest of the request's content is needed.
    var stepAwaitingContent: Step?
    /// The client sends NTLM or Negotiate credentials of its own, so that its connection to the origin cannot be
    /// shared.
    let clientBindsConnection: Bool
    /// Whether the proxy may answer a challenge of this exchange at all.
    private(set) var mayBeAnswered: Bool
    /// The cause of the request, if that may be a page of another origin; otherwise nil.
    private(set) var foreignCause: ForeignCause?
    /// The request, or an answer to a challenge of it, cannot be sent over HTTP/2.
    var needsHTTP1: Bool
    /// Another exchange is opening a connection that this one can use, too.
    var isWaitingForOther = false
    /// The connection does not lead to the parent whose challenges this exchange would answer.
    var isElsewhere = false
    /// The person has agreed to the request.
    var isApproved = false
    /// The request waits for the person.
    var approvalTicket: ApprovalBoard.Ticket?
    var waitingSince: UInt64
    var lastProgress: UInt64

    // These values change by calls that the compiler cannot see through, so it would check each access at run time for
    // exclusivity, at 80 instructions each. No mutating method of these values calls back into the driver.
    @exclusivity(unchecked) var acquisition: ConnectionAcquisition
    @exclusivity(unchecked) var body: RequestBodyRelay
    @exclusivity(unchecked) var delivery = ResponseDelivery()
    @exclusivity(unchecked) var record: ExchangeRecord

    var origin: Origin { route.origin }
    var policy: Policy { route.policy }
    var rule: SiteRule? { route.rule }
    var connection: (any OriginLease)? { acquisition.connection }
    /// The exchange's part of ``connection``. In HTTP/1 a connection has one stream; in HTTP/2 it will have many.
    var stream: (any OriginStream)? { acquisition.connection }

    /// `pin` is the SHA-256 of the leaf that the client accepts, if it named one.
    init(
        client: any ExchangeClient, session: ClientSession, services: LoopServices, head: consuming RequestHead,
        route: Route, path: ArraySlice<UInt8>, pin: [UInt8]?
    ) {
        self.client = client
        self.session = session
        self.services = services
        self.route = route
        self.path = path

        let authorization = route.injection?.stands(for: head) == true ? nil : head.fields.value(of: .authorization)
        let binds = authorization.map(Self.bindsConnection) == true
        if binds { session.authenticates(itselfTo: route.origin) }
        let foreignCause = ForeignCause.of(head, route, session)
        self.foreignCause = foreignCause
        let isWithheld = foreignCause?.isRefused == true
        // NTLM authenticates the connection: later requests of this client belong to its user too, without the field.
        // Those of another origin's pages get another connection.
        clientBindsConnection = session.hasAuthenticated(itselfTo: route.origin) && (binds || !isWithheld)
        needsHTTP1 = head.upgrade != nil || clientBindsConnection
        let clientAuthorizes = route.challenger == nil && (authorization != nil || clientBindsConnection)
        let mayBeAnswered = route.mayAnswer && !clientAuthorizes && !isWithheld
        self.mayBeAnswered = mayBeAnswered

        var acquisition = ConnectionAcquisition(route, pin: pin, mayBeAnswered: mayBeAnswered, services.shared)
        if mayBeAnswered, session.hasPersistentConnections {
            let slot = route.ticketSlot(like: acquisition.slot)
            if session.hasPersistentConnection(for: slot.key) { acquisition.use(slot) }
        }
        self.acquisition = acquisition
        let hasContent = head.hasBody
        let prepared = Self.prepare(
            acquisition.slot, route, session, services, clientAuthorizes: clientAuthorizes,
            foreignCause: foreignCause, hasBody: hasContent, path: path)
        self.prepared = prepared
        answers = AnswerDialogue(prepared.exchange)
        let keeps = mayBeAnswered && acquisition.trust.answers
        let upload = hasContent && keeps ? Self.upload(of: head, route, services) : nil
        self.upload = upload
        let spool = upload == nil ? nil : Self.spool(services)
        body = RequestBodyRelay(
            // A parent that opens no tunnel challenges the request itself.
            hasContent: hasContent, keeps: keeps || route.answersSite && services.shared.routes != nil,
            limitBytes: route.injection?.rule.place == .aws
                ? max(Self.signedContentBytes, services.configuration.replayLimitBytes)
                : services.configuration.replayLimitBytes, spool: spool)
        // Scrapes and the page itself are no traffic.
        let isOwn = services.configuration.ownSite.map { $0.origin == route.origin } ?? false
        record = ExchangeRecord(in: isOwn ? nil : services.shared.journal)
        waitingSince = services.now
        lastProgress = services.now
        self.head = head
        spool?.changed = { [weak self] in self?.spoolChanged() }
    }

    deinit {
        // A client that remembers cookies sends those of the session, too.
        if route.sharedSession != nil { head.fields.wipe(.cookie) }
    }

    private static func bindsConnection(_ authorization: String) -> Bool {
        AuthenticatorTable.supported.bindsConnection(schemeNamed: authorization.prefix { $0 != " " })
    }

    /// The exchange of a request that is about to be sent, and its first action.
    private static func prepare(
        _ slot: UpstreamPool.Slot, _ route: Route, _ session: ClientSession, _ services: LoopServices,
        clientAuthorizes: Bool, foreignCause: ForeignCause?, hasBody: Bool, path: ArraySlice<UInt8>,
        sendsAhead: Bool = true
    ) -> Route.PreparedExchange {
        guard !clientAuthorizes, foreignCause?.isRefused != true, slot.key.trust.answers else {
            var context = route.context
            context.clientAuthorizes = clientAuthorizes
            context.foreignCause = foreignCause?.refusal?.refusal
            if !slot.key.trust.answers {
                context.site = .no(.untrusted)
                context.originTrusted = false
            }
            return Route.PreparedExchange(context, hasBody: hasBody)
        }
        let space = sendsAhead ? usableSpace(for: path, slot, route, session, services) : nil
        return route.preparedExchange(hasBody: hasBody, in: space)
    }

    /// The protection space that earlier requests found `path` to lie in, if its credential may be sent pre-emptively.
    private static func usableSpace(
        for path: ArraySlice<UInt8>, _ slot: UpstreamPool.Slot, _ route: Route, _ session: ClientSession,
        _ services: LoopServices
    ) -> Route.LearnedSpace? {
        guard let rule = route.rule, rule.preempts, !session.hasPersistentConnection(for: slot.key) else { return nil }
        let learned = route.learnedSpace(for: path, in: slot)
        if rule.answer.contains(.negotiate), let space = route.learnedTicketSpace(for: path, like: slot),
            !(learned?.space.isPreferred(to: space.space) ?? false), session.isStillSameUser()
        {
            return space
        }
        guard let tag = slot.key.credential, let learned, session.isStillSameUser(),
            !route.policy.hasExpired(tag, now: services.shared.wallClock),
            services.shared.breaker.mayPreempt(
                learned.pulse, .init(space: learned.space.accepted.space, credential: tag)),
            !learned.space.bindsConnection
                || !session.hasAuthenticatedConnection(for: slot.key) && !route.hasParentConnection
        else { return nil }
        return learned
    }

    // MARK: The dialogue

    func start() {
        if let refusal = route.refusal {
            return respond(
                OwnResponse(status: 403, detail: route.refused(for: refusal), proxyError: "http_request_denied"))
        }
        if route.mayAnswer, let reason = services.shared.journal.recorder?.refusal {
            return respond(OwnResponse(status: 503, detail: reason, proxyError: "proxy_internal_error"))
        }
        if case .length(let count) = head.framing, let refusal = excess(count) { return respond(refusal) }
        if waitsForApproval() { return }
        run(answers.began(with: prepared.action, for: self))
    }

    /// Runs one action. Each ends in an event for the dialogue, now or later.
    func run(_ action: AnswerDialogue.Action) {
        switch action {
        case .send(let answer):
            prepare(.transmit(answer, isOpening: false))
        case .sendOpening(let answer):
            prepare(.transmit(answer, isOpening: true))
        case .openDialogue(let request):
            openDialogue(request)
        case .later(let later):
            wait(for: later)
        case .deliver(let outcome):
            note(outcome)
            deliver()
        case .fail(let failure):
            respond(OwnResponse(status: 502, detail: failure.reason, proxyError: failure.cause.proxyError))
        case .wait:
            break
        }
    }

    /// Starts the exchange again: nothing has been sent under the trust outcome that it was started with, or the answer
    /// that it was started with must not be sent. `sendsAhead`: another one may be sent before a challenge.
    func restart(sendsAhead: Bool = true, clientAuthorizes: Bool? = nil) {
        prepared = Self.prepare(
            acquisition.slot, route, session, services,
            clientAuthorizes: clientAuthorizes ?? answers.machine.context.clientAuthorizes,
            foreignCause: foreignCause, hasBody: head.hasBody, path: path, sendsAhead: sendsAhead)
        answers.restart(as: prepared.exchange)
        start()
    }

    /// Continues on another route to the same origin: nothing has been sent.
    func restart(on route: Route, under outcome: TrustOutcome) {
        self.route = route
        // The client's credentials for the origin, and the page that causes the request, do not matter to a parent.
        var clientAuthorizes = answers.machine.context.clientAuthorizes
        if route.challenger != nil {
            clientAuthorizes = false
            foreignCause = nil
            mayBeAnswered = route.mayAnswer
        }
        acquisition.use(route.slot(under: outcome, mayBeAnswered: mayBeAnswered))
        restart(clientAuthorizes: clientAuthorizes)
    }

    /// Whether `accepted` is the answer that earlier requests got accepted, sent before a challenge.
    func isReused(_ accepted: AcceptedAnswer) -> Bool { accepted === prepared.accepted }

    func beginDialogue() -> Dialogue {
        if let dialogue { return dialogue }
        let new = Dialogue()
        dialogue = new
        return new
    }

    // MARK: The next request

    /// Brings a connection into the state that `step` needs: the buffered response read to its end, or another
    /// connection.
    func prepare(_ step: Step) {
        if delivery.buffered != nil, body.hasLostItsStart {
            return run(answers.replayImpossible(reason: Refusal(body.lossReason), for: self))
        }
        if body.hasSpooledContent, step.needsContent {
            return run(answers.replayImpossible(reason: Refusal(tooMuchContent), for: self))
        }
        if route.injection != nil, waitsForContentToSign(step) { return }
        if !body.hasEnded, step.needsContent {
            if case .length(let count) = head.framing, count > UInt64(body.limitBytes) {
                return run(answers.replayImpossible(reason: Refusal(tooMuchContent), for: self))
            }
            stepAwaitingContent = step
            // The origin has challenged instead of inviting the content.
            if head.expectsContinue, !body.speed.hasBegun { client.inviteContent() }
            return pace()
        }
        if let response = delivery.buffered, !response.ended, let stream, requestIsWhole {
            mode = .draining(step, swallowedBytes: response.pieces.reduce(0) { $0 + $1.readableBytes })
            beginDialogue().lastChallenge = response
            return stream.resumeReading()
        }
        drained(step)
    }

    var tooMuchContent: String { "the answer covers the request body, which is larger than \(body.limitBytes) bytes" }

    /// The request that is being answered was sent to its end, so that its connection can carry another one.
    var requestIsWhole: Bool { stream?.requestIsWhole ?? true }

    func drained(_ step: Step) {
        if let response = delivery.take() {
            noteHiddenCookies(of: response.head)
            if response.ended, !response.wasCut { beginDialogue().lastChallenge = response }
        }
        mode = .preparing
        // Reading pauses during a decision, even if the whole response has arrived.
        connection?.resumeReading()
        connection?.carriesHandshake = answers.machine.requiresSameConnection
        leaveHTTP2(for: step)
        if let connection, connection.isReusable, !needsHTTP1 || connection.http2 == nil {
            guard parentHasRefusedContent else { return perform(step, on: connection) }
            dropConnection()
        }
        if answers.machine.requiresSameConnection {
            dropConnection()
            // Nothing of this step has been sent.
            return run(answers.connectionLost(requestMayRepeat: true, for: self))
        }
        acquire(step)
    }

    /// Squid does not continue to use a connection on which it has refused a request with content, although it keeps
    /// the connection open.
    private var parentHasRefusedContent: Bool {
        guard route.challenger != nil, head.hasBody, case .transmit(_, isOpening: false)? = lastStep else {
            return false
        }
        return !answers.machine.requiresSameConnection
    }

    func dropConnection() {
        acquisition.release()?.reset()
    }

    func perform(_ step: Step, on connection: any OriginLease) {
        switch step {
        case .openDialogue(let request):
            run(answers.connected(for: request, self))
        case .transmit(let answer, let isOpening):
            if let use = route.brokerUse, awaitsBrokerCookie(use, before: step) { return }
            if answer != nil, services.now > waitingSince, answers.mustWithdraw(services.shared.breaker) {
                waitingSince = services.now
                return restart()
            }
            lastStep = step
            transmit(answer, isOpening: isOpening, on: connection)
        }
    }
}
