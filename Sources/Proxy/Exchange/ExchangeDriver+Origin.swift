// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignHTTP1
import CountersignParents
import CountersignUpstream
import NIOCore

/// From the origin to the client: responses are buffered, delivered, discarded, or the request is tried again.
extension ExchangeDriver: OriginStreamDelegate {
    func originResponded(_ response: consuming ResponseHead, content: ContentEnd) {
        lastProgress = services.now
        redact(response.fields)
        if let repair = response.repair { record.repaired(repair) }
        if response.isInformational { return informational(response) }
        guard case .waiting = mode, !repeatsWithoutExpectation(response) else { return }
        mode = .deciding
        let status = response.status
        let fields = response.fields
        delivery.buffer(response, content: content)
        record.originResponded(status)
        noteAcceptedIdentity(status: status)
        if route.challenger != nil, let head = delivery.buffered?.head { noteParentResponse(head) }
        let nonce = noteNonce(in: fields)
        if nonce != nil, status >= 400 { beginDialogue().nonce = nonce } else { dialogue?.nonce = nil }
        if let use = route.injection { noteInjection(use, status: status) }
        let isParent = route.challenger != nil
        run(
            answers.responseReceived(
                status: status, challengeFields: challenges(in: fields, status: status),
                informationFields: fields.values(of: isParent ? .proxyAuthenticationInfo : .authenticationInfo),
                for: self))
        if case .deciding = mode { stream?.pauseReading() }
    }

    /// Any response may have the nonce of the next proof (RFC 9449 §8.2).
    @discardableResult
    func noteNonce(in fields: FieldLines) -> String? {
        guard route.challenger == nil, route.rule?.answer.contains(.bearer) == true,
            let nonce = DPoPNonces.nonce(in: fields.values(named: "DPoP-Nonce"))
        else { return nil }
        answerServices.nonces.note(nonce, of: origin)
        return nonce
    }

    private var responseVia: ViaField { services.shared.via(isHTTP2: connection?.http2 != nil) }

    private func informational(_ response: ResponseHead) {
        if response.status == 101 { return switchProtocols(response) }
        guard delivery.acceptsInterim() else {
            dropConnection()
            return originFailed(
                UpstreamError(.malformedResponse, "more than 32 interim responses", status: response.status))
        }
        // A request that only opens a dialogue is the proxy's own, and so are the interim responses to it.
        guard case .waiting = mode, body.streams || body.isWithheld || !head.hasBody,
            !consumesInterim(status: response.status)
        else { return }
        client.sendInterim(response, ResponseChanges(via: responseVia))
    }

    func originSent(_ content: ByteBuffer) {
        lastProgress = services.now
        switch mode {
        case .delivering:
            send(content)
        case .draining(let step, let swallowed):
            let total = swallowed + content.readableBytes
            dialogue?.lastChallenge?.pieces.append(content)
            mode = .draining(step, swallowedBytes: total)
            if total > services.configuration.swallowedBodyBytes {
                dropConnection()
                dialogue?.lastChallenge = nil
                drained(step)
            }
        case .deciding:
            delivery.buffered?.pieces.append(content)
        case .preparing, .waiting, .done:
            break
        }
    }

    func originResponseEnded(trailers: FieldLines?) {
        switch mode {
        case .delivering: finishDelivery(trailers: trailers)
        case .draining(let step, _):
            dialogue?.lastChallenge?.ended = true
            dialogue?.lastChallenge?.trailers = trailers
            drained(step)
        case .deciding:
            delivery.buffered?.ended = true
            delivery.buffered?.trailers = trailers
        case .preparing, .waiting, .done: break
        }
    }

    func originReadCompleted() {
        client.flush()
    }

    func originWritabilityChanged(_ isWritable: Bool) {
        pace()
        if body.isReplaying { sendSpooledContent() }
        stream?.flush()
    }

    func originFailed(_ error: UpstreamError) {
        let wasReused = (connection?.requestCount ?? 0) > 1
        let wasHTTP2 = connection?.http2 != nil
        let wasTurnedAway = mayBeTurnedAway
        services.shared.observer?.ended(error, at: origin)
        if error.code == .ownFault { services.shared.tellOwnFault(error.detail) }
        _ = acquisition.release()
        switch mode {
        case .waiting:
            let isGone = error.code == .networkGone
            // lighttpd 1.4.69 breaks the rules with two challenges, and only in HTTP/2: curl fails there, too.
            let isGarbled = wasHTTP2 && error.code == .malformedResponse && head.method.isIdempotent
            let isUnprocessed = error.code == .notProcessed || error.code == .needsHTTP1 || isGarbled
            if error.code == .needsHTTP1 || isGarbled { requireHTTP1() }
            if isGone || isUnprocessed || error.code == .closedBeforeResponse, answers.machine.requiresSameConnection {
                let mayRepeat = head.method.isIdempotent || isUnprocessed
                return run(answers.connectionLost(requestMayRepeat: mayRepeat, for: self))
            }
            // Nobody has read the answer, so its attempt is still the same. In case that is not true, a password is not
            // sent more than twice.
            if isUnprocessed, !body.hasLostItsStart, let lastStep,
                acquisition.retriesUnprocessed(atMost: answers.awaitsVerdict ? 1 : 3)
            {
                return drained(lastStep)
            }
            let isClosed = error.code == .closedBeforeResponse && (wasReused || wasTurnedAway)
            if isGone || isClosed, head.method.isIdempotent, !body.hasLostItsStart, body.hasEnded || body.isWithheld,
                acquisition.retries(), answers.mayAnswerAgain()
            {
                // The origin closed an idle connection, or its network is gone. RFC 9112 §9.3.1 permits one more
                // attempt. It is unknown whether a password that was sent ahead has been read.
                if answers.hasSentUnaskedPassword { return restart(sendsAhead: false) }
                if let lastStep { return drained(lastStep) }
            }
            let giveUp = {
                self.loseAnswer(.unusableResponse(status: error.status, otherwise: .lost(by: error.code)))
                self.respond(self.explained(OwnResponse(error)))
            }
            // On a reused connection, the origin may already have acted on this request.
            let mayRepeat = !wasReused || head.method.isIdempotent
            if !mayRepeat || !waitsForIdentity(after: error, lastStep, giveUp: giveUp) { giveUp() }
        case .draining(let step, _):
            dialogue?.lastChallenge = nil
            drained(step)
        case .deciding:
            if delivery.buffered?.ended == false { delivery.buffered?.wasCut = true }
            delivery.buffered?.ended = true
        case .delivering:
            abort()
        case .preparing, .done:
            break
        }
    }

    /// Whether the end of a connection that was new may be that of a server that restarts, such as Apache, and not the
    /// answer to this request. Another connection then serves the request. The content of a request, the client's own
    /// NTLM, and a reset of the stream alone are reasons that it may be about the request.
    private var mayBeTurnedAway: Bool {
        !head.hasBody && !clientBindsConnection && connection?.http2?.isReusable != true
    }

    private func switchProtocols(_ response: ResponseHead) {
        guard case .waiting = mode, case .transmit(_, isOpening: false)? = lastStep, head.upgrade != nil,
            requestIsWhole, let origin = stream?.upgrade()
        else {
            dropConnection()
            return originFailed(
                UpstreamError(
                    .malformedResponse, "the origin switched protocols unasked", status: response.status))
        }
        mode = .done
        if case .deliver(let outcome) = answers.responseReceived(status: 101, challengeFields: [], for: self) {
            note(outcome)
        }
        recordUse()
        answers.end(.inconclusive)
        _ = acquisition.release()
        let tally = TunnelHandler.Tally(now: services.now, session) { tally in
            self.record.tunnelled(byteCount: tally.bytesFromOrigin)
            self.log(status: 101)
        }
        var changes = ResponseChanges(via: responseVia)
        changes.dropsAuthentication = wasAccepted
        changes.setCookies = hiddenSetCookies(besides: response)
        client.switchProtocols(response, changes, to: origin, tally: tally)
    }

    // MARK: Delivery

    /// Sends the buffered response to the client.
    func deliver() {
        guard let response = delivery.take() else {
            return respond(
                OwnResponse(status: 502, detail: "the origin's response was lost", proxyError: "connection_terminated"))
        }
        if let reason = route.challenger?.reasonForSite, response.head.status == 401, !isElsewhere {
            record.explain(reason)
        }
        explainInjection(status: response.head.status)
        if let notice = withheldNotice(for: response) ?? redactionFault(response.head) { return respond(notice) }
        mode = .delivering
        recordUse()
        if let use = route.sharedSession { noteSessionCookies(response.head.fields, use) }
        if head.hasBody { body.stopKeeping() }
        services.shared.responses?.delivered(response.head, to: head.fields, from: origin)
        let invites = invitesSessionAuthentication(response)
        if (invites && !withholdsCredential) || clientBindsConnection {
            connection?.isAuthenticated = true
            connection?.becomesPersonal()
        }
        client.send(response, changes(to: response, invitesSessionAuthentication: invites))
        if route.sharedSession != nil { response.head.fields.wipe(.setCookie) }
        if !response.pieces.isEmpty { send(response.pieces) }
        if response.ended {
            guard !response.wasCut else { return abort() }
            finishDelivery(trailers: response.trailers)
        } else {
            stream?.resumeReading()
        }
    }

    /// In place of a challenge that is not answered because the device does not comply, for a client that shows no
    /// pages: a notice of one line. Its challenges are those of the origin.
    private func withheldNotice(for response: BufferedResponse) -> OwnResponse? {
        guard response.head.status == 401, !policy.withheld.isEmpty, route.isListed, let reason = record.reason,
            (answers.machine.checks.refusal ?? connection?.certificateChecks?.refusal)?.isWithheld == true, !showsPages
        else { return nil }
        var notice = OwnResponse(status: 401, detail: "not answered: \(reason)")
        notice.extraFields = response.head.fields.values(of: .wwwAuthenticate).map { ("WWW-Authenticate", $0) }
        return notice
    }

    /// Whether the client is a browser, or says that it accepts HTML.
    private var showsPages: Bool {
        value("accept")?.lowercased().contains("text/html") == true
            || value("user-agent")?.contains("Mozilla") == true
    }

    private func changes(
        to response: BufferedResponse, invitesSessionAuthentication: Bool
    ) -> ResponseChanges {
        let isExplained = route.isListed || acquisition.trust.decider != nil
        var changes = ResponseDelivery.changes(
            to: response, via: responseVia, reason: isExplained ? record.reason : nil,
            isAboutAnswer: route.injection == nil)
        changes.dropsAuthentication = wasAccepted && response.head.status != 401 && route.challenger == nil
        changes.setCookies = hiddenSetCookies(besides: response.head)
        if let parent = connection?.forwarder { addFields(of: parent, to: response.head, &changes) }
        changes.dropsAllowOrigin = hides(response)
        if route.sharedSession != nil {
            changes.isSecret = !changes.setCookies.isEmpty || response.head.fields.contains(.setCookie)
        }
        if invitesSessionAuthentication {
            changes.extraFields.append(("Proxy-Support", "Session-Based-Authentication"))
        }
        return changes
    }

    /// The fields that only a parent's response has.
    private func addFields(of parent: Origin, to response: ResponseHead, _ changes: inout ResponseChanges) {
        switch response.status {
        case ChallengeSource.parentProxy.status:
            // The client may answer the parent itself.
            let challenges = response.fields.values(of: .proxyAuthenticate)
            changes.extraFields += challenges.map { ("Proxy-Authenticate", $0) }
        case 508:
            let place = HostText.joined(parent.host, parent.port)
            let details = "behind the parent \(place), the request came back to a proxy that had forwarded it"
            changes.extraFields.append(
                ("Proxy-Status", ProxyStatus.value(error: "proxy_loop_detected", details: details)))
        default: break
        }
    }

    /// Whether the client may answer the response with NTLM or Negotiate through the proxy (RFC 4559 §6), on an origin
    /// connection of its own.
    private func invitesSessionAuthentication(_ response: BufferedResponse) -> Bool {
        guard response.head.status == 401, case .proxy = session.role else { return false }
        return ResponseDelivery.offersConnectionBoundScheme(response.head)
    }

    /// Sends content that was buffered. Content that the origin sends meanwhile comes after it.
    private func send(_ pieces: [ByteBuffer]) {
        delivery.sendsBuffered = true
        for content in pieces { send(content) }
        delivery.sendsBuffered = false
    }

    private func send(_ content: ByteBuffer) {
        let content = dialogue?.injection?.redactor?.redacted(content) ?? content
        guard content.readableBytes > 0 else { return }
        record.delivered(byteCount: content.readableBytes)
        client.send(content)
        if !client.isWritable { stream?.pauseReading() }
    }

    private func finishDelivery(trailers: FieldLines?) {
        guard case .delivering = mode else { return }
        if let rest = dialogue?.injection?.redactor?.rest() {
            if let trailers { redact(trailers) }
            dialogue?.injection = nil
            send(rest)
        }
        mode = .done
        returnConnection()
        log(status: record.status)
        client.finish(trailers: trailers)
    }

    /// Returns the connection to the pool. One that is authenticated for a person stays with this client.
    private func returnConnection() {
        guard let connection = acquisition.release() else { return }
        if let repair = connection.repair {
            record.repaired(repair)
            // The client's own handshake continues with its next request.
            connection.carriesHandshake = clientBindsConnection && record.status == 401
        }
        if connection.lacksIdentity, !clientBindsConnection { return connection.close() }
        let isPersonal =
            connection.isAuthenticated || connection.hasShownIdentity || !acquisition.trust.isShared
        if isPersonal, let slot = parentSlot(for: connection) {
            slot.giveBack(connection, now: services.now)
        } else if isPersonal {
            session.bind(connection, for: acquisition.slot.key)
        } else {
            acquisition.slot.giveBack(connection, now: services.now)
        }
    }
}

extension Breaker.Result {
    /// The result of an answer without a response: the octets received are not a response, or none were received.
    fileprivate static func lost(by code: UpstreamError.Code) -> Self {
        switch code {
        case .malformedResponse, .closedInResponse, .ownFault: .unknown
        case .notProcessed, .needsHTTP1: .inconclusive
        default: .unanswered
        }
    }
}
