// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignUpstream
import NIOCore

/// From the client to the origin: requests and their content, back-pressure, and the client's end.
extension ExchangeDriver {
    /// The value of `Max-Forwards` to send with TRACE and OPTIONS (RFC 9110 §7.6.2); nil if the client sent none.
    private var maxForwards: UInt? {
        guard head.method.takesMaxForwards, let value = head.fields.value(of: .maxForwards),
            let left = UInt(value)
        else { return nil }
        return left == 0 ? 0 : left - 1
    }

    /// Sends the client's request with `authorization`. `isOpening`: without its content, to open a dialogue that
    /// authenticates the connection.
    func transmit(_ answer: Answer?, isOpening: Bool, on stream: any OriginStream) {
        let authorization = answer?.field(for: self, answerInputs)
        if answer != nil, authorization == nil {
            return run(
                answers.replayImpossible(
                    reason: "the answer depends on content that is no longer available", for: self))
        }
        let sendsContent = !isOpening && head.hasBody
        guard !sendsContent || !body.hasLostItsStart else { return contentLost() }
        let withholds = sendsContent && withholdsContent(with: answer)
        let binds = authorization != nil && answers.machine.requiresSameConnection
        if clientBindsConnection || isOpening || binds { connection?.isAuthenticated = true }
        if clientBindsConnection { connection?.becomesPersonal() }
        // From now on the request may take as long as any other, and so may the server's proof.
        if !isOpening { dialogue?.since = nil }
        if let used = answers.sends(authorization, isOpening: isOpening) {
            wasAnswered(in: used.space, with: used.credential)
        }
        record.requestSent(isAuthorized: authorization != nil, overHTTP2: connection?.http2 != nil)
        mode = .waiting
        waitingSince = services.now
        lastProgress = services.now
        body.beginRequest(
            withContent: sendsContent, isWithheld: withholds, spools: upload != nil && expectsChallenge(to: answer))
        upload?.begin()
        var cookies: (any SecretFieldValue)?
        if let use = route.sharedSession { cookies = sessionCookies(use) }
        if let hidden = dialogue?.hiddenCookies, hidden.changesRequest { cookies = cookieField(with: hidden) }
        var added: [AddedField] = []
        if route.announcesDevice { added += deviceFields }
        if route.brokerUse != nil { added += brokerFields }
        if let foreignCause, cookies != nil || !added.isEmpty { foreignCause.addedSecret = true }
        if route.challenger == nil, let proof = authorization?.proof {
            added.append(AddedField(DPoPProof.field, SecretField(secret: proof), replaces: true))
        }
        var target = path
        var omitted = route.omittedFields
        var injected: Injected?
        if let use = route.injection {
            let changes = self.injected(use)
            added += changes.fields
            omitted += changes.omitted
            if var cookie = changes.cookie {
                if cookies != nil { cookie.others = cookies }
                cookies = cookie
            }
            if let changed = changes.target { target = changed }
            injected = changes
        }
        if connection?.forwarder != nil {
            target = absoluteTarget
            added += parentFields(authorization)
        }
        stream.send(
            head,
            RequestChanges(
                target: target, authority: route.authority, withholdsContent: isOpening,
                authorization: route.challenger == nil ? authorization : nil,
                via: services.shared.via(isHTTP2: client.speaksHTTP2), maxForwards: maxForwards,
                expectsContinue: withholds, cookie: cookies, added: added, omitted: omitted,
                hidesTarget: injected?.target != nil, sharesSession: route.sharedSession != nil))
        injected?.wipe()
        guard isCurrent(stream) else { return interrupted() }
        if withholds { return awaitInvitation(on: stream) }
        if sendsContent { return self.sendContent(to: stream) }
        body.requestWritten()
        stream.finish(trailers: nil)
        stream.flush()
    }

    // MARK: A parent that forwards requests

    /// The target in absolute-form (RFC 9112 §3.2.2), which for `OPTIONS *` has no path (§3.2.4).
    private var absoluteTarget: ArraySlice<UInt8> {
        let site = Array("\(origin.scheme.rawValue)://\(route.authority)".utf8)
        return (path.elementsEqual([UInt8(ascii: "*")]) ? site : site + path)[...]
    }

    /// The answer to the parent, or the client's own if the proxy does not answer it.
    private func parentFields(_ authorization: AuthorizationField?) -> [AddedField] {
        if route.challenger != nil, !isElsewhere {
            return authorization.map { [AddedField("Proxy-Authorization", $0)] } ?? []
        }
        guard services.configuration.clientTokens.isEmpty, route.challenger == nil,
            let own = head.fields.value(of: .proxyAuthorization) ?? session.connectSite?.parentAuthorization
        else { return [] }
        // A field that the client means for a parent with TLS is not sent without TLS.
        let hops = services.shared.routes?.knownRoute(to: origin, path: "/") ?? []
        guard connection?.forwarderTLS != nil || !ParentPaths.hasTLS(hops) else { return [] }
        return [AddedField("Proxy-Authorization", ClientField(own))]
    }

    // MARK: Events

    /// A part of the request's content arrived.
    func clientSent(_ content: ByteBuffer) {
        lastProgress = services.now
        if case .done = mode { return }
        let sends = body.received(content, isOpen: takesContent)
        if let refusal = excess(UInt64(body.speed.receivedBytes)) { return contentRefused(refusal) }
        if sends, let stream, !sendPiece(content, to: stream) { return }
        if stepAwaitingContent != nil, body.hasLostItsStart || body.isFull { continueWithContent() }
        pace()
    }

    /// The response to a request with `count` bytes of content, if the site's line does not permit that much.
    func excess(_ count: UInt64) -> OwnResponse? {
        let maximum = route.maximumBodyBytes
        guard count > UInt64(maximum), let rule = route.siteLine else { return nil }
        return OwnResponse(
            status: 413, detail: "\(rule.location) permits at most \(ByteCount(bytes: maximum).text) of content",
            proxyError: "http_request_denied")
    }

    /// The client has sent more content than the site's line permits. The origin gets no more, and not the end.
    private func contentRefused(_ refusal: OwnResponse) {
        if case .delivering = mode { return abort() }
        loseAnswer(.unknown)
        respond(refusal)
    }

    /// The request is complete.
    func clientRequestEnded(trailers: FieldLines?) {
        waitingSince = services.now
        // All of the content is in memory and can be sent again, so there is nothing to wait for.
        if body.isWithheld, case .waiting = mode {
            _ = body.ended(trailers: trailers, isOpen: false)
            return releaseContent()
        }
        if body.ended(trailers: trailers, isOpen: takesContent), let stream {
            guard finishContent(of: stream, trailers: trailers) else { return }
            stream.flush()
        }
        continueWithContent()
    }

    /// Continues with the answer that waits for the content, or hands the challenge back if there is too much of it.
    private func continueWithContent() {
        guard let step = stepAwaitingContent else { return }
        stepAwaitingContent = nil
        guard case .deciding = mode else { return }
        if route.injection != nil, endsWaitForContentToSign(step) { return }
        guard body.hasEnded else {
            return run(answers.replayImpossible(reason: Refusal(tooMuchContent), for: self))
        }
        prepare(step)
    }

    /// Everything that one read delivered has been reported.
    func clientReadCompleted() {
        stream?.flush()
    }

    /// The client takes more of the response, or wants a pause.
    func clientWritabilityChanged(_ isWritable: Bool) {
        // The origin's next content must come after the buffered one, and reading resumes when that has been sent.
        guard case .delivering = mode, !delivery.sendsBuffered else { return }
        if isWritable { stream?.resumeReading() } else { stream?.pauseReading() }
    }

    // MARK: Back-pressure

    /// Whether the request that was sent last may still receive content.
    var takesContent: Bool {
        switch mode {
        case .waiting, .delivering: connection != nil
        case .preparing, .deciding, .draining, .done: false
        }
    }

    /// Pauses the client while the origin is slow, or while nothing can be sent and enough is buffered.
    func pace() {
        guard body.mayPace else { return }
        if case .done = mode { return }
        let mustWait: Bool
        if body.sendsContent(isOpen: takesContent), let stream {
            // Content that waits for a flush would keep the connection from becoming writable again.
            if !stream.isWritable { stream.flush() }
            mustWait = !stream.isWritable || body.isSpoolBehind
        } else {
            mustWait = body.isFull
        }
        body.heldBack(mustWait)
        if mustWait { client.pauseRequest() } else { client.resumeRequest() }
    }
}
