// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignSitePolicy
import NIOCore

/// Requests to lines with `approve=`, which wait until a person has agreed. Nothing is sent before, so that neither a
/// password, an authenticated connection nor a certificate goes ahead of the answer.
extension ExchangeDriver {
    /// Asks the person, if the request may get a credential and nobody has agreed. Returns whether it waits, or has
    /// ended.
    func waitsForApproval() -> Bool {
        // A parent's line has no `approve=`, but the site's token may go with the request.
        let line = route.challenger == nil ? route.rule : route.siteRule
        guard let rule = line, let approval = rule.approval, !isApproved, mayBeAnswered, route.mayAnswer,
            // What is sent after an upgrade is not seen.
            approval.applies(isSafe: head.method.isSafe && head.upgrade == nil),
            route.hasCredential || route.injection != nil
        else { return false }
        guard let board = services.shared.approvals else {
            refuseUnapproved(.nobody, rule)
            return true
        }
        let process = session.process
        let program = session.client?.facts.executable?.path
        let subject = ApprovalBoard.Subject(
            site: origin.description, rule: rule.location, method: head.methodText, program: program,
            otherwise: process.pid.map { "process \($0)" } ?? "an unknown process", uid: process.uid)
        mode = .preparing
        let gate = services.gate
        let driver = NIOLoopBound(self, eventLoop: services.loop)
        let reply = board.ask(subject, credential: rule.credential) {
            outcome in gate.execute { driver.value.approved(outcome) }
        }
        switch reply {
        case .allowed:
            isApproved = true
            return false
        case .waiting(let ticket):
            approvalTicket = ticket
            return true
        }
    }

    private func approved(_ outcome: ApprovalBoard.Outcome) {
        guard approvalTicket != nil, case .preparing = mode, let rule = route.rule else { return }
        approvalTicket = nil
        guard outcome == .allowed else { return refuseUnapproved(outcome, rule) }
        isApproved = true
        // A token may have been renewed meanwhile. With other lines, the question would have ended.
        if route.policyVersion == services.shared.policy.version { return start() }
        restart(on: currentRoute, under: acquisition.trust)
    }

    private func refuseUnapproved(_ outcome: ApprovalBoard.Outcome, _ rule: SiteRule) {
        let reason =
            switch outcome {
            case .denied: "the person has not agreed to this request"
            case .nobody: "only the proxy of `countersign serve` can ask a person whether to send this request"
            case .changed: "the home has changed before a person had agreed to this request"
            case .replaced: "the proxy has restarted before a person had agreed to this request"
            case .crowded: "too many requests wait for the person to agree"
            case .timedOut, .allowed: "nobody has agreed to this request within \(ApprovalBoard.limitSeconds) seconds"
            }
        record.unapproved()
        respond(
            OwnResponse(
                status: 403, detail: "\(reason), which \(rule.location) asks for", proxyError: "http_request_denied"))
    }

    /// The client has gone, or the exchange ends in another way.
    func withdrawQuestion() {
        guard let ticket = approvalTicket else { return }
        approvalTicket = nil
        services.shared.approvals?.withdraw(ticket)
    }
}
