// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

// Negotiate with Kerberos (RFC 4559)
//
//   KerberosAuthenticator   plugs it in: which challenges, the verdict on a repeated challenge, unasked answers
//   KerberosDialogue        the steps of one dialogue, each on a thread of ``KerberosWorkers``
//   InitiatorContext        the GSS-API context, and its tokens in SPNEGO
//   ServiceName             `HTTP/host` without canonicalisation
//   UserTicket              the user's own ticket
//   KerberosTickets         the tickets of enrolled principals, and which ticket is in use
//   ObtainedTicket          one of them, obtained from a KDC
//   KeytabKeys              the keys of a principal
//   KerberosError           the failures, each with its own sentence and remedy
//
// NTLM inside Negotiate is `NTLMAuthenticator.spnego`. It comes after this scheme in the table, so that it answers only
// if no ticket is available (`KerberosError.meansNoTicket`).

/// Kerberos in SPNEGO, with the ticket of an enrolled principal, or the user's own, for which nothing is enrolled.
package final class KerberosAuthenticator: Authenticator {
    package static let shared = KerberosAuthenticator()

    private init() {}

    package var schemeName: String { "Negotiate" }
    package var scheme: AuthenticationScheme { .negotiate }
    package var name: String { "Kerberos" }
    package var usesTicket: Bool { true }
    /// A server may authenticate the whole connection (MS-N2HT calls it `Persistent-Auth`).
    package var bindsConnection: Bool { true }
    /// Or only the request, as Apache does.
    package var answersEachRequest: Bool { true }
    package var usesChannelBinding: Bool { true }
    package var verifiesAcceptance: Bool { true }

    package func realm(of challenge: Challenge) -> String? { nil }

    package func proof<Proof>(for request: CredentialRequest, from source: some ProofSource<Proof>) -> Proof {
        source.ticket
    }

    /// The ticket that is used now.
    package func permitKey(of credential: CredentialReference, in space: AuthenticationSpace) -> Breaker.Key? {
        let version = KerberosTickets.shared.version(of: credential)
        return Breaker.Key(space: space, credential: credential.ticket(version: version, at: space.origin))
    }

    package func secondLook(for credential: CredentialReference) -> SecondLook? {
        let unchanged = Refusal(.rejected, "the site has rejected the Kerberos ticket, which has not changed since")
        return SecondLook(unchanged: unchanged) { KerberosTickets.shared.look(for: credential, done: $0) }
    }

    package func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? {
        switch credential {
        case .ticket, .principal: nil
        case .password, .token, .identity, .device, .aws: "Kerberos needs a ticket"
        }
    }

    package func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        if let obstacle = obstacle(to: credential, context) {
            throw AuthenticationError(.unusableCredential, obstacle)
        }
        return .dialogue
    }

    package func makeDialogue(
        _ credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> any TokenDialogue {
        var principal: PrincipalCredential?
        if case .principal(let enrolled) = credential { principal = enrolled }
        return KerberosDialogue(
            context: InitiatorContext(
                service: context.servicePrincipalName, delegatesByPolicy: context.delegatesByPolicy),
            principal: principal, attempts: context.kdcAttempts)
    }

    /// The server has rejected the ticket, unless it sent a token.
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict {
        let tokens = repeated.challenges.filter { $0.isOf(schemeName) }.compactMap(\.token68)
        guard let first = tokens.first else { return .rejected }
        guard tokens.count == 1, let token = Base64.decode(first) else {
            return .handBack("\(repeated.source.name) sent a Kerberos token that cannot be read")
        }
        return .nextToken(token)
    }

    package func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict { response.lastToken(of: schemeName) }

    /// Each request carries a token of its own (RFC 4559 §4).
    package func preemption(after answer: Answer) -> Preemption { .token }
}

/// Runs the client's side of one Kerberos dialogue for an exchange.
private struct KerberosDialogue: TokenDialogue {
    private typealias Report = @Sendable (Result<DialogueToken, KerberosError>) -> Void

    let context: InitiatorContext
    /// Nil for the user's own ticket.
    let principal: PrincipalCredential?
    let attempts: KDCAttempts?

    mutating func take(_ step: TokenStep, binding: ChannelBinding?, _ inputs: AnswerInputs) -> TokenComputation {
        let dialogue = self
        return .elsewhere { report in
            dialogue.take(step, binding) { result in
                report(
                    result.mapError { error in
                        AuthenticationError(error.meansNoTicket ? .unavailable : .tokenFailed, error.sentence)
                    })
            }
        }
    }

    private func take(_ step: TokenStep, _ binding: ChannelBinding?, _ report: @escaping Report) {
        let context = context
        switch step {
        case .open:
            open(binding, report)
        case .reply(let token):
            run(nil, report) { () throws(KerberosError) in try context.reply(to: token) }
        case .conclude(let token):
            run(nil, report) { () throws(KerberosError) in
                DialogueToken(concluding: try context.conclude(token))
            }
        }
    }

    /// Only the first token needs a ticket. Requests for the same service and account take turns, because the first one
    /// obtains the service's ticket for all.
    private func open(_ binding: ChannelBinding?, _ report: @escaping Report) {
        let context = context
        guard let principal else {
            return run(context.service, report) { () throws(KerberosError) in
                KerberosTickets.shared.noteFirstUse()
                return try context.open(binding, with: nil)
            }
        }
        let dialogue = self
        KerberosTickets.shared.ticket(of: principal, attempts) { result in
            switch result {
            case .failure(let error):
                report(.failure(error))
            case .success(let ticket):
                let service = "\(context.service) \(KerberosTickets.key(principal.reference))"
                dialogue.run(service, report) { () throws(KerberosError) in
                    try context.open(binding, with: ticket)
                }
            }
        }
    }

    private func run(
        _ service: String?, _ report: @escaping Report,
        _ body: @escaping @Sendable () throws(KerberosError) -> DialogueToken
    ) {
        KerberosWorkers.shared.run(for: service, body, done: report)
    }
}
