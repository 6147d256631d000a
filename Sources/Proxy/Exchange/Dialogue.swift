// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignNTLM

/// What an exchange keeps once it is about an answer: its origin has challenged it, or did so before. Most do without.
final class Dialogue {
    /// When the first challenge came, in seconds; nil while a person is asked.
    var since: UInt64?
    /// The attempt that the breaker has permitted, until it is known how it ended.
    var attempt: Breaker.Key?
    var ntlm: NTLMContext?
    /// What the caller supplied in the place of a refused credential.
    var supplied: PasswordCredential?
    /// How often the caller has been asked for one.
    var questionsAsked = 0
    /// The challenge that was answered last, as far as it is kept.
    var lastChallenge: BufferedResponse?
}
