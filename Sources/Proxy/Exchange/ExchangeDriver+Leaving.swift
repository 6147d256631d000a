// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignParents
import NIOCore

/// The end of an exchange whose client has left.
extension ExchangeDriver {
    /// The client has gone, or its request turned out to be malformed.
    func clientGone() {
        if case .done = mode { return }
        withdrawQuestion()
        leaveOrigin()
        mode = .done
        cancelAttempt()
        log(status: record.status == 0 ? 499 : record.status)
    }

    /// Gives the connection up. If a credential is on its way, the origin's verdict on it is still awaited.
    func leaveOrigin() {
        guard case .waiting = mode, answers.awaitsVerdict, let connection,
            LateVerdict.begin(for: self, on: connection)
        else {
            loseAnswer(.unknown)
            return dropConnection()
        }
        record.awaitsVerdict = true
        _ = acquisition.release()
        body.stopKeeping()
    }

    /// The origin has responded after the client had left.
    func verdictArrived(_ response: borrowing ResponseHead) {
        if route.sharedSession != nil { response.fields.wipe(.setCookie) }
        record.originResponded(response.status)
        // A rejected expectation says nothing about the credential.
        if response.status == 417, upload?.isExpecting == true { return loseAnswer(.inconclusive) }
        let isParent = route.challenger != nil
        let fields = response.fields
        noteNonce(in: fields)
        if let use = route.injection { noteInjection(use, status: response.status) }
        let outcome = answers.lateResponseReceived(
            status: response.status,
            challengeFields: challenges(in: fields, status: response.status),
            informationFields: fields.values(of: isParent ? .proxyAuthenticationInfo : .authenticationInfo),
            for: self)
        if let outcome { note(outcome) }
    }
}
