// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignParents
import CountersignUpstream

/// The origin's responses on their way to the client: the one that waits for a decision, and its changes when it is
/// forwarded.
struct ResponseDelivery {
    private static let interimLimit = 32

    /// The response that the exchange has not yet decided about.
    private(set) var buffered: BufferedResponse?
    /// The buffered content is being sent to the client.
    var sendsBuffered = false
    private var interimCount = 0

    mutating func buffer(_ head: consuming ResponseHead, content: ContentEnd) {
        buffered = BufferedResponse(head: head, content: content)
    }

    /// Puts an earlier response back in its place.
    mutating func restore(_ response: BufferedResponse?) {
        buffered = response
    }

    mutating func take() -> BufferedResponse? {
        let taken = buffered
        buffered = nil
        return taken
    }

    /// Counts an interim response. False if there are too many.
    mutating func acceptsInterim() -> Bool {
        interimCount += 1
        return interimCount <= Self.interimLimit
    }

    /// The changes that every final response gets. `reason`: why the proxy did not answer a challenge, for the client
    /// to see; unless `isAboutAnswer`, what else there is to say.
    static func changes(
        to response: BufferedResponse, via: ViaField, reason: String?, isAboutAnswer: Bool = true
    ) -> ResponseChanges {
        var changes = ResponseChanges(via: via)
        if !response.head.fields.contains(.date) { changes.extraFields.append(("Date", WallClock.httpDate())) }
        if let reason {
            let text = response.head.status == 401 && isAboutAnswer ? "not answered: \(reason)" : reason
            changes.extraFields.append(("Proxy-Status", ProxyStatus.value(error: nil, details: text)))
        }
        return changes
    }

    /// Whether the response offers a scheme that authenticates the connection rather than the request.
    static func offersConnectionBoundScheme(_ head: ResponseHead) -> Bool {
        AuthenticatorTable.supported.offersConnectionBoundScheme(in: head.fields.challengeFields(of: .origin))
    }
}
