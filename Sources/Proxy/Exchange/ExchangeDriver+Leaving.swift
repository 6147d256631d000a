// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignParents
import NIOCore

/// The end of an exchange whose client has left.
extension ExchangeDriver {
    /// The client has gone, or its request turned out to be malformed.
    func clientGone() {
        if case .done = mode { return }
        leaveOrigin()
        mode = .done
        cancelAttempt()
        log(status: record.status == 0 ? 499 : record.status)
    }

    /// Gives the connection up. If a credential is on its way, the origin's verdict on it is still awaited.
    func leaveOrigin() {
        guard awaitsVerdict, let connection, LateVerdict.begin(for: self, on: connection) else {
            loseAnswer(.unknown)
            return dropConnection()
        }
        _ = acquisition.release()
        body.stopKeeping()
    }

    /// A credential was sent that may be wrong, and the origin has not responded. The opening of a dialogue contains
    /// none, and no ticket locks an account.
    private var awaitsVerdict: Bool {
        guard case .waiting = mode else { return false }
        if let permit = dialogue?.permit { return permit.awaitsVerdict && !permit.key.credential.isTicket }
        guard sentField != nil, let answer = exchange.unaskedAnswer else { return false }
        return !answer.credential.isTicket
    }

    /// The origin has responded after the client had left. Only the breaker and later requests profit from that: an
    /// answer to a further challenge is not sent.
    func verdictArrived(_ response: borrowing ResponseHead) {
        if route.sharedSession != nil { response.fields.wipe(.setCookie) }
        record.responded(response.status)
        // A rejected expectation says nothing about the credential.
        if response.status == 417, upload?.isExpecting == true { return loseAnswer(.inconclusive) }
        let isParent = route.challenger != nil
        let fields = response.fields
        let action = exchange.responseReceived(
            status: response.status,
            challengeFields: fields.challengeFields(of: isParent ? .parentProxy : .origin),
            informationFields: fields.values(of: isParent ? .proxyAuthenticationInfo : .authenticationInfo),
            sent: sentField)
        if case .ask(let request) = action, let refused = request.refused { noteChallenge(to: refused) }
        guard case .deliver(let outcome) = action else { return loseAnswer(.inconclusive) }
        conclude(outcome)
        endPermit(.inconclusive)
    }
}
