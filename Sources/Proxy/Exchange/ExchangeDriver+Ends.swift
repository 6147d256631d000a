// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignUpstream

/// How an exchange ends otherwise than by a response of the origin's.
extension ExchangeDriver {
    /// The client went away, or what it sent cannot be trusted.
    func clientGone() {
        if case .done = mode { return }
        mode = .done
        trustEvaluation?.cancel()
        endAttempt(.inconclusive)
        dropConnection()
        log(status: entry.status == 0 ? 499 : entry.status)
    }

    func secondPassed(now: UInt64) {
        let limits = services.configuration
        if let since = dialogue?.since, isInDialogue, now > since + limits.dialogueSeconds { return endDialogue() }
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
            held = dialogue?.lastChallenge
        } else if held == nil {
            trustEvaluation?.cancel()
            dropConnection()
            held = dialogue?.lastChallenge
        }
        endAttempt(.inconclusive)
        guard let held, held.ended || connection != nil else {
            return respond(OwnResponse(status: 504, detail: reason, proxyError: "http_response_timeout"))
        }
        entry.status = held.head.status
        entry.reason = reason
        observe(.handedBack(ThreeChecks(site: exchange.checks.site, challenge: .no(reason))))
        deliver()
        client.output.flush()
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
        client.output.write(response.bytes(keepAlive: keeps, to: head.method))
        client.output.flush()
        log(status: response.status)
        client.responseFinished(keepAlive: keeps)
    }

    func log(status: Int) {
        guard let started, let accessLog = services.shared.accessLog else { return }
        entry.status = status
        var decision = AccessLog.Decision.forward
        if case .intercepted = client.role { decision = .intercept }
        accessLog.write(
            started, of: client.process, method: head.methodText, site: origin, decision: decision, rule: rule, entry)
    }
}
