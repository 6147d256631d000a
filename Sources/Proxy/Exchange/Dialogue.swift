// SPDX-License-Identifier: Apache-2.0

import CountersignAWSSignature
import CountersignAnswering
import CountersignChallenges
import CountersignCookies

/// A driver's state for an exchange that answers a challenge, besides its `AnswerDialogue`. An object, because most
/// exchanges do without it.
final class Dialogue {
    /// When the first challenge arrived, in seconds; nil while a person is deciding.
    var since: UInt64?
    /// The identity broker's response for this request; nil without a question to it.
    var brokerCookie: BrokerCookies.Outcome?
    /// The nonce in the last response, for the proof of the next request (RFC 9449 §9).
    var nonce: String?
    /// Whether the identity broker was queried.
    var asksBroker = false
    /// The cookies of responses that the client did not get.
    var hiddenCookies: HiddenCookies?
    /// The token of the site's line that was sent with the last request; nil for none.
    var injection: SentInjection?
    /// Why it was not sent.
    var withheldInjection: Refusal?
    /// Replaces the signatures in the content of the last request; nil if there are none.
    var chunkSigner: ChunkSigner?
    /// The content was waited for, or need not be, so that the request can be signed.
    var hasWaitedForContent = false
    /// The part received so far of the response with the most recently answered challenge.
    var lastChallenge: BufferedResponse?
}
