// SPDX-License-Identifier: Apache-2.0

/// All the proofs that can answer one site: the enrolled credential, the user's tickets, and the certificates of this
/// device. A scheme takes its own from them (``Authenticator/proof(for:from:)``).
package protocol ProofSource<Proof> {
    /// A decision about a credential; nil if the caller decides elsewhere.
    associatedtype Proof

    /// The password or token for `space`.
    func enrolled(in space: AuthenticationSpace) -> Proof
    /// The Kerberos principal that the site's line names, or else the user's own ticket.
    var ticket: Proof { get }
    /// The certificate of this device that answers `challenge`.
    func device(for challenge: Challenge) -> Proof
}

/// A check for a newer proof than the one that the breaker refuses. Such a proof is not enrolled, so it may have
/// changed unnoticed.
package struct SecondLook: Sendable {
    /// Begins the check. The closure calls its argument once, on any thread.
    package let start: @Sendable (_ done: @escaping @Sendable () -> Void) -> Void
    /// Why the challenge is handed back if the proof is unchanged.
    package let unchanged: Refusal

    package init(unchanged: Refusal, start: @escaping @Sendable (_ done: @escaping @Sendable () -> Void) -> Void) {
        self.unchanged = unchanged
        self.start = start
    }
}

extension Authenticator {
    package func proof<Proof>(for request: CredentialRequest, from source: some ProofSource<Proof>) -> Proof {
        source.enrolled(in: request.space)
    }

    package func permitKey(of credential: CredentialReference, in space: AuthenticationSpace) -> Breaker.Key? {
        Breaker.Key(space: space, credential: credential)
    }

    package func secondLook(for credential: CredentialReference) -> SecondLook? { nil }
}
