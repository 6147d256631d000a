// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignCookies

/// The state of an exchange that answers a challenge. An object, because most exchanges do without it.
final class Dialogue {
    /// When the first challenge arrived, in seconds; nil while a person is deciding.
    var since: UInt64?
    /// The attempt that the breaker has permitted, until its result is known.
    var permit: BreakerAttempt?
    /// Makes the tokens of a scheme that needs several rounds.
    var tokens: (any TokenDialogue)?
    /// The credential from the delegate that replaces a rejected one.
    var delegateCredential: PasswordCredential?
    /// The access token that was renewed for this exchange, which is done once.
    var renewedToken: TokenCredential?
    /// The renewal was requested.
    var hasRenewedToken = false
    /// What the identity broker has said about this request; nil unless it was asked.
    var brokerCookie: BrokerCookies.Outcome?
    /// The identity broker was asked.
    var asksBroker = false
    /// How often a replacement was requested.
    var questionsAsked = 0
    /// The cookies of responses that the client did not get.
    var hiddenCookies: HiddenCookies?
    /// The response with the challenge that was answered most recently, as far as it has been received.
    var lastChallenge: BufferedResponse?
}
