// SPDX-License-Identifier: Apache-2.0

/// A credential as it was enrolled, by name: enough to tell what an answer was made of, and no secret.
package struct CredentialReference: Hashable, Sendable {
    package let name: String
    package let generation: UInt64

    package init(name: String, generation: UInt64) {
        self.name = name
        self.generation = generation
    }
}

extension PasswordCredential {
    /// What to remember it by.
    package var reference: CredentialReference { CredentialReference(name: name, generation: generation) }
}

/// What is known of a request before it goes out.
package struct RequestContext: Equatable, Sendable {
    package var origin: Origin
    /// Is the site on the list, or why not?
    package var site: ThreeChecks.Check
    /// What the site's line permits.
    package var permitted: [AuthenticationScheme]
    /// The site's line says `plaintext=yes`.
    package var plaintextPermitted: Bool
    /// The client sent an `Authorization` of its own: nothing is answered.
    package var clientAuthorizes: Bool
    /// The origin's certificate was verified, or the site is http. False where the caller went on regardless.
    package var originTrusted: Bool
    package var hasBody: Bool
    /// What earlier requests taught about this path of this origin, for this credential; nil: nothing, or `preempt=no`.
    package var learned: ExchangeMachine.Learned?
    /// Goes before a bare user name in Basic (`ACME\jdoe`).
    package var domain: String?

    package init(
        origin: Origin, site: ThreeChecks.Check, permitted: [AuthenticationScheme], plaintextPermitted: Bool,
        clientAuthorizes: Bool, originTrusted: Bool, hasBody: Bool, learned: ExchangeMachine.Learned? = nil, domain: String? = nil
    ) {
        self.origin = origin
        self.site = site
        self.permitted = permitted
        self.plaintextPermitted = plaintextPermitted
        self.clientAuthorizes = clientAuthorizes
        self.originTrusted = originTrusted
        self.hasBody = hasBody
        self.learned = learned
        self.domain = domain
    }
}

extension ExchangeMachine {
    /// A protection space that has challenged and accepted in this run.
    package enum Learned: Equatable, Sendable {
        /// The answer that was accepted: it goes with the request at once (RFC 7617 §2.2).
        case basic(AuthorizationField, realm: String, credential: CredentialReference)
        /// The dialogue is opened at once, which spares the first 401. The question is still asked.
        case ntlm(OfferKind)

        package var kind: OfferKind {
            switch self {
            case .basic: .basic
            case .ntlm(let kind): kind
            }
        }
    }

    /// What the driver does next; one for each event.
    package enum Action: Equatable, Sendable {
        /// Send the whole request, with our answer; nil: as the client sent it. Answered by `responseReceived`.
        case send(AuthorizationField?)
        /// Send NTLM's first message: a request with a body goes with `Content-Length: 0`. Answered by `responseReceived`.
        case sendOpening(AuthorizationField)
        /// Put the question. Answered by `decisionReceived`.
        case ask(CredentialRequest)
        /// Make an NTLM message; a nil `serverToken` wants the first one. Answered by `tokenComputed` or `tokenFailed`.
        case computeToken(OfferKind, PasswordCredential, serverToken: [UInt8]?)
        /// Give the client the response whose head is held, or streams from now on.
        case deliver(Outcome)
        /// There is no response to give: 502.
        case fail(reason: String)
        /// Nothing: an interim response came, or the answer to an earlier action is still due.
        case wait
    }

    /// How a dialogue ended that has a response to deliver.
    package enum Outcome: Equatable, Sendable {
        /// The response was none to answer: not a 401, or a 407 (which says nothing of a credential that was sent).
        case notChallenged
        /// The origin took the answer. `realm` is Basic's; worth learning.
        case accepted(OfferKind, credential: CredentialReference, realm: String?)
        /// The origin's 401, as it came; the first check that failed says why.
        case handedBack(ThreeChecks)
        /// The origin's 401 to our answer: for the breaker.
        case rejected(OfferKind, credential: CredentialReference, ThreeChecks)
    }
}

extension RequestContext {
    /// A check fails before anything is sent.
    var isRefused: Bool { !site.passed || !originTrusted || clientAuthorizes }

    /// The checks that fail before anything is sent, or nil.
    var refusal: ThreeChecks? {
        guard isRefused else { return nil }
        guard site.passed else { return ThreeChecks(site: site) }
        guard originTrusted else { return ThreeChecks(site: .no("the origin's certificate is not trusted")) }
        return ThreeChecks(site: site, challenge: .no("the client sent its own Authorization"))
    }

    /// The check of a site whose password would travel in the clear, or nil.
    var plaintextRefusal: ThreeChecks.Check? {
        origin.scheme == .http && !plaintextPermitted
            ? .no("site is http and its line does not say plaintext=yes") : nil
    }

    /// What may be used of ``learned`` under the site's line as it is now.
    var usableLearned: ExchangeMachine.Learned? {
        guard let learned, plaintextRefusal == nil, permitted.contains(learned.kind.method.scheme)
        else { return nil }
        return learned
    }
}
