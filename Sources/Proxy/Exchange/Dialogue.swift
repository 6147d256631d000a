// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignCookies

/// What a driver keeps of an exchange that answers a challenge, besides its `AnswerDialogue`. An object, because most
/// exchanges do without it.
final class Dialogue {
    /// When the first challenge arrived, in seconds; nil while a person is deciding.
    var since: UInt64?
    /// What the identity broker has said about this request; nil unless it was asked.
    var brokerCookie: BrokerCookies.Outcome?
    /// The identity broker was asked.
    var asksBroker = false
    /// The cookies of responses that the client did not get.
    var hiddenCookies: HiddenCookies?
    /// The response with the challenge that was answered most recently, as far as it has been received.
    var lastChallenge: BufferedResponse?
}
