// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import CountersignUpstream
import NIOCore

/// Large content: when it is sent, and how it is sent again.
extension ExchangeDriver {
    /// The upload of a request with large content that the proxy may have to send again; nil for any other.
    static func upload(
        of head: borrowing RequestHead, _ route: Route, _ services: LoopServices
    ) -> Upload? {
        let configuration = services.configuration
        switch head.framing {
        case .none, .untilClose: return nil
        case .length(let count): guard count > UInt64(configuration.replayLimitBytes) else { return nil }
        case .chunked: break
        }
        guard route.answersChallenges else { return nil }
        return Upload(clientExpects: head.fields.contains(.expect) || head.upgrade != nil)
    }

    /// The spool of an upload; nil if content is not spooled.
    static func spool(_ services: LoopServices) -> ContentSpool? {
        let budget = services.shared.spoolBudget
        guard budget.limitBytes > 0 else { return nil }
        return ContentSpool(folders: services.configuration.spoolFolders, budget: budget, loop: services.loop)
    }

    /// Whether the origin may well challenge a request with `answer`. A fixed answer was accepted before, or a
    /// challenge of this exchange asked for it. The inputs of an answer that is computed per request may have expired
    /// since it was accepted, such as the nonce of Digest (RFC 7616 §3.3), or the origin gives one only in reply to the
    /// answer, as some do with the nonce of DPoP (RFC 9449 §9).
    func expectsChallenge(to answer: Answer?) -> Bool {
        switch answer {
        case nil: true
        case .fixed: false
        case .perRequest(let signer): answers.machine.unaskedAnswer != nil || signer.lacksInput(answerInputs)
        }
    }

    /// Whether the content of a request with `answer` waits for the origin's invitation. If the origin has no reason to
    /// challenge it, this requires that the origin honours expectations.
    ///
    /// Not in HTTP/2: there a challenge does not have to wait for the content, and stops it without loss of the
    /// connection. And the two sides of a stream may wait for each other, as in gRPC.
    func withholdsContent(with answer: Answer?) -> Bool {
        guard let upload, connection?.http2 == nil, !upload.clientExpects, !upload.isRejected,
            !route.ignoresExpectations, acquisition.trust.answers, !body.hasEnded || body.hasSpooledContent
        else { return false }
        return expectsChallenge(to: answer) || upload.isHonoured
    }

    /// The head has been sent with an expectation.
    func awaitInvitation(on stream: any OriginStream) {
        guard let upload else { return }
        upload.isExpecting = true
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        let transmission = upload.transmission
        upload.wait = services.loop.scheduleTask(in: services.configuration.invitationWait) {
            driver.value.invitationMissing(transmission)
        }
        body.requestWritten()
        pace()
        stream.flush()
    }

    /// The origin has not invited the content of this transmission in time.
    private func invitationMissing(_ transmission: Int) {
        guard upload?.transmission == transmission, case .waiting = mode, body.isWithheld else { return }
        route.ignoresExpectations = true
        releaseContent()
    }

    /// Sends the content that was withheld.
    func releaseContent() {
        upload?.wait?.cancel()
        guard case .waiting = mode, body.isWithheld, let stream else { return }
        guard !body.hasLostItsStart else { return contentLost() }
        lastProgress = services.now
        body.release()
        sendContent(to: stream)
    }

    /// Handles an interim response. Returns whether it was for the proxy only: the client did not send the expectation
    /// (RFC 9110 §15.2).
    func consumesInterim(status: Int) -> Bool {
        guard status == 100, let upload, upload.isExpecting else { return false }
        releaseContent()
        return true
    }

    /// Handles a final response. Returns whether the request is sent again without the expectation, which the origin
    /// rejects (RFC 9110 §15.5.18). It has then not acted on the request, even if it has received the content.
    func repeatsWithoutExpectation(_ response: borrowing ResponseHead) -> Bool {
        guard let upload, upload.isExpecting else { return false }
        let status = response.status
        upload.wait?.cancel()
        if status == 417 { route.ignoresExpectations = true }
        guard status == 417, !body.hasLostItsStart, let lastStep else {
            if body.isWithheld { upload.isHonoured = true }
            return false
        }
        upload.isRejected = true
        noteHiddenCookies(of: response)
        dropConnection()
        drained(lastStep)
        return true
    }

    // A send may re-enter this object before it returns: the network accepts no more, accepts more again, or is gone.
    // The nested call finds the state that follows the send, because that is changed before. After the send, the
    // exchange may be on another connection, or over.

    /// Sends the content received so far.
    func sendContent(to stream: any OriginStream) {
        let isComplete = body.hasEnded
        while let content = body.nextBuffered() {
            guard sendPiece(content, to: stream) else { return interrupted() }
            guard isCurrent(stream) else { return interrupted() }
        }
        if body.hasSpooledContent {
            body.beginReplay()
            body.requestWritten()
            pace()
            stream.flush()
            return sendSpooledContent()
        }
        body.requestWritten()
        if isComplete, !finishContent(of: stream, trailers: body.trailers) { return }
        guard isCurrent(stream) else { return }
        pace()
        stream.flush()
    }

    /// Whether the exchange still uses the stream.
    func isCurrent(_ stream: any OriginStream) -> Bool { connection === stream }

    /// The stream was lost while a request was written to it. The next one may have gone out already.
    func interrupted() {
        body.interrupted()
        pace()
    }

    /// Sends the next record if the origin accepts it, or the content after the last one. Meanwhile the client is
    /// paused.
    func sendSpooledContent() {
        guard body.isReplaying, takesContent, let stream, let upload, let spool = body.spool, !upload.isReading,
            stream.isWritable
        else { return }
        guard upload.nextRecord < spool.recordCount else { return sendRest(of: spool, to: stream) }
        upload.isReading = true
        let transmission = upload.transmission
        spool.read(upload.nextRecord) { [self] result in
            upload.isReading = false
            guard upload.transmission == transmission, body.isReplaying, takesContent, let stream = self.stream else {
                return sendSpooledContent()
            }
            switch result {
            case .failure:
                contentLost()
            case .success(let content):
                upload.nextRecord += 1
                lastProgress = services.now
                guard sendPiece(content, to: stream) else { return }
                self.stream?.flush()
                sendSpooledContent()
            }
        }
    }

    /// Sends the content after the last record. The client, which may go on after that, is heard again only when it is
    /// in the channel.
    private func sendRest(of spool: ContentSpool, to stream: any OriginStream) {
        let rest = spool.rest
        let isComplete = body.hasEnded
        body.endReplay()
        guard sendPiece(rest, to: stream), isCurrent(stream) else { return }
        if isComplete, !finishContent(of: stream, trailers: body.trailers) { return }
        guard isCurrent(stream) else { return }
        stream.flush()
        pace()
    }

    /// More content is in the file, or the file has failed.
    func spoolChanged() {
        if case .done = mode { return }
        // A record that is being sent again reports the failure when it is read.
        if let failure = body.spool?.failure, !body.isReplaying { body.giveUpRepeats(because: failure) }
        pace()
    }

    /// The content cannot be sent from its start, and the origin needs it.
    func contentLost() {
        if case .delivering = mode { return abort() }
        loseAnswer(.unknown)
        respond(OwnResponse(status: 502, detail: "the request's content could not be sent again"))
    }
}
