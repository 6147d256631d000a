// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignUpstream
import NIOCore

/// How an exchange ends other than with a complete response from the origin: time limits, failures, and responses made
/// by the proxy.
extension ExchangeDriver {
    func secondPassed(now: UInt64) {
        let limits = services.configuration
        if let since = dialogue?.since, isInDialogue, now > since + limits.dialogueSeconds { return endDialogue() }
        guard !body.secondPassed(isExpected: expectsContent) else {
            return requestTooSlow(
                "the request's content arrived at less than \(BodyPace.minimumBytesPerSecond) bytes per second")
        }
        switch mode {
        case .waiting where requestIsWhole:
            if now > waitingSince + limits.originTimeoutSeconds { timedOut(after: limits.originTimeoutSeconds) }
        case .waiting, .delivering, .draining:
            if now > lastProgress + limits.bodyIdleSeconds {
                if case .delivering = mode { return abort() }
                if expectsContent, !body.speed.isHeldBack {
                    return requestTooSlow("none of the request's content arrived for \(limits.bodyIdleSeconds) seconds")
                }
                timedOut(after: limits.bodyIdleSeconds)
            }
        case .preparing, .deciding, .done:
            break
        }
    }

    /// The origin has challenged, and the request with the final answer has not been sent. The time limit of the
    /// dialogue does not apply to that request, which may take as long as any other.
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

    /// Gives the client the last challenge, if it is still there.
    private func endDialogue() {
        let reason = "the dialogue took longer than \(services.configuration.dialogueSeconds) seconds"
        if case .draining = mode {
            delivery.restore(dialogue?.lastChallenge)
        } else if delivery.buffered == nil {
            cancelAttempt()
            dropConnection()
            delivery.restore(dialogue?.lastChallenge)
        }
        answers.end(.inconclusive)
        guard let response = delivery.buffered, response.ended || connection != nil else {
            return respond(OwnResponse(status: 504, detail: reason, proxyError: "http_response_timeout"))
        }
        record.responded(response.head.status)
        record.explain(reason)
        answers.givenUp(because: Refusal(reason), for: self)
        deliver()
        client.flush()
    }

    /// The request is out, and the client can send the rest of its content, which it cannot while it waits for 100
    /// Continue.
    private var expectsContent: Bool {
        guard case .waiting = mode, body.streams, !body.hasEnded else { return false }
        return !head.expectsContinue || body.speed.hasBegun
    }

    private func requestTooSlow(_ detail: String) {
        leaveOrigin()
        respond(OwnResponse(status: 408, detail: detail))
    }

    private func timedOut(after seconds: UInt64) {
        let status = connection?.statusOfUnreadHead
        dropConnection()
        loseAnswer(.unusableResponse(status: status, otherwise: .unknown))
        respond(
            OwnResponse(
                status: 504, detail: "the origin sent nothing for \(seconds) seconds",
                proxyError: "http_response_timeout"))
    }

    /// Cuts the response that is being delivered, in a way that the client can see.
    func abort() {
        withdrawQuestion()
        mode = .done
        answers.end(.inconclusive)
        dropConnection()
        log(status: record.status)
        client.reset()
    }

    /// Sends a response made by the proxy in place of the origin's.
    func respond(_ response: OwnResponse) {
        if case .done = mode { return }
        mode = .done
        withdrawQuestion()
        cancelAttempt()
        dropConnection()
        record.explain(response.detail)
        log(status: response.status)
        client.finish(with: response)
    }

    /// Records the use of a credential, if there was one.
    func recordUse() { record.recordUse(to: services.shared.journal, session, method: head.methodText, route) }

    func log(status: Int) {
        record.responded(status)
        record.write(
            to: services.shared.journal, session, method: head.methodText,
            version: client.speaksHTTP2 ? .http2 : head.version == .http10 ? .http10 : .http11, route)
    }
}
