// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The state of an exchange whose request has content that is too large for memory, or of unknown length, and that the
/// origin may challenge. An object, because most exchanges do without it.
///
/// Such content should not be sent to an origin that will challenge it. So its head goes out with `Expect:
/// 100-continue`, and the content follows when the origin invites it, or after a short wait: an origin may ignore the
/// expectation (RFC 9110 §10.1.1). In case it challenges nevertheless, the content goes to a ``ContentSpool`` while it
/// is sent.
final class Upload {
    /// The client has an expectation of its own. It is forwarded, and so are the origin's interim responses.
    let clientExpects: Bool
    /// The request that was sent last carries an expectation of ours.
    var isExpecting = false
    /// The origin has answered an expectation with a final response.
    var isHonoured = false
    /// The origin rejects expectations (417).
    var isRejected = false
    /// The number of requests sent so far. Results that arrive for an earlier one are ignored.
    var transmission = 0
    /// The next record of the spool to send.
    var nextRecord = 0
    /// A record is being read.
    var isReading = false
    var wait: Scheduled<Void>?

    init(clientExpects: Bool) { self.clientExpects = clientExpects }

    /// A request is about to be sent.
    func begin() {
        transmission += 1
        isExpecting = false
        nextRecord = 0
        wait?.cancel()
        wait = nil
    }

    deinit { wait?.cancel() }
}
