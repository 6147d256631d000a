// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// An accepted answer, and the answer that may be sent in its protection space before the next challenge. Immutable and
/// shared: all requests into the space refer to one object.
package final class AcceptedAnswer: Sendable, Equatable {
    package let offer: Offer
    package let space: AuthenticationSpace
    package let credential: CredentialReference
    package let preemption: Preemption

    package init(_ offer: Offer, at origin: Origin, credential: CredentialReference, preemption: Preemption) {
        self.offer = offer
        space = offer.space(at: origin)
        self.credential = credential
        self.preemption = preemption
    }

    package static func == (left: AcceptedAnswer, right: AcceptedAnswer) -> Bool {
        left.offer == right.offer && left.space == right.space && left.credential == right.credential
            && left.preemption == right.preemption
    }
}
