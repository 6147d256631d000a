// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignNTLM
import Testing

@testable import CountersignChallenges

/// One line of the transcript of an exchange: an event that the driver reports, or the expected action.
enum Line {
    case event(ExchangeMachine.Event)
    case expect(ExchangeMachine.Action)
    /// The expected results of the checks so far.
    case checks(ThreeChecks)
    case sameConnection(Bool)
}

extension Line {
    static func response(_ status: Int, _ fields: String...) -> Line {
        .event(.responseReceived(status: status, challengeFields: fields.map { ChallengeField($0) }))
    }
    static func decision(_ decision: CredentialDecision) -> Line { .event(.decisionReceived(decision)) }
    /// The tokens in these tests are numbered. The server replies to the first one.
    static func token(_ token: [UInt8]) -> Line {
        .event(.tokenComputed(DialogueToken(token, expectsReply: token == [1])))
    }
    static let lost = Line.event(.connectionLost(requestMayRepeat: false))
    static let lostButMayRepeat = Line.event(.connectionLost(requestMayRepeat: true))
}

/// Plays `lines` to an exchange with `context` through its package API. The action of each event must be the
/// next line.
@discardableResult
func play(
    _ context: RequestContext, _ lines: [Line], sourceLocation: SourceLocation = #_sourceLocation
) -> ExchangeMachine {
    var exchange = ExchangeMachine(context)
    var pending: ExchangeMachine.Action?
    for (index, line) in lines.enumerated() {
        switch line {
        case .event(let event):
            #expect(pending == nil, "line \(index): an action was not expected", sourceLocation: sourceLocation)
            var rehearsal = exchange
            guard rehearsal.decide(event) != nil else {
                Issue.record("line \(index): the driver's mistake", sourceLocation: sourceLocation)
                return exchange
            }
            pending = exchange.report(event)
        case .expect(let action):
            #expect(pending?.summary == action.summary, "line \(index)", sourceLocation: sourceLocation)
            pending = nil
        case .checks(let checks):
            #expect(exchange.checks == checks, "line \(index)", sourceLocation: sourceLocation)
        case .sameConnection(let claim):
            #expect(exchange.requiresSameConnection == claim, "line \(index)", sourceLocation: sourceLocation)
        }
    }
    #expect(pending == nil, "the last action was not expected", sourceLocation: sourceLocation)
    return exchange
}

/// Plays `lines` with the context of a listed https site at which no answer was accepted yet.
@discardableResult
func play(_ lines: [Line], sourceLocation: SourceLocation = #_sourceLocation) -> ExchangeMachine {
    play(.site(), lines, sourceLocation: sourceLocation)
}

extension ExchangeMachine {
    mutating func report(_ event: Event) -> Action {
        switch event {
        case .started: started()
        case .responseReceived(let status, let fields, let information):
            responseReceived(status: status, challengeFields: fields, informationFields: information)
        case .decisionReceived(let decision): decisionReceived(decision)
        case .tokenComputed(let token): tokenComputed(token)
        case .tokenFailed(let reason, let isUnavailable):
            tokenFailed(AuthenticationError(isUnavailable ? .unavailable : .tokenFailed, reason.text))
        case .connectionLost(let mayRepeat): connectionLost(requestMayRepeat: mayRepeat)
        case .replayImpossible(let reason): replayImpossible(reason: reason)
        }
    }
}

// MARK: Participants

extension Origin {
    static let wiki = Origin(scheme: .https, host: "wiki.corp.example", port: 443)
    static let printer = Origin(scheme: .http, host: "printer.corp.example", port: 80)
}

extension PasswordCredential {
    static let jdoe = PasswordCredential(
        name: "enrollment", user: "jdoe", password: Secret(utf8: "canary-password"), generation: 7)
}

extension CredentialDecision {
    static let jdoe = CredentialDecision.useCredential(.password(.jdoe))
    static let none = CredentialDecision.performDefaultHandling(reason: "no credential \"enrollment\"")
}

extension AuthorizationField {
    /// The answer of jdoe to a Basic challenge.
    static let basic = AuthorizationField(scheme: "Basic", credentials: Array("jdoe:canary-password".utf8))
    static let opening = AuthorizationField(scheme: "NTLM", credentials: [1])
    static let answer = AuthorizationField(scheme: "NTLM", credentials: [3])
}

extension Answer {
    static let basic = Answer.fixed(.basic)
    static let opening = Answer.fixed(.opening)
    static let answer = Answer.fixed(.answer)
}

/// The authenticators of these tests, strongest first.
enum OfferKind: CaseIterable, Sendable {
    case ntlm, ntlmInNegotiate, basic

    var authenticator: any Authenticator {
        switch self {
        case .ntlm: NTLMAuthenticator.raw
        case .ntlmInNegotiate: NTLMAuthenticator.spnego
        case .basic: BasicAuthenticator.shared
        }
    }

    func offer(_ realm: String? = nil) -> Offer {
        Offer(
            authenticator,
            Challenge(
                scheme: authenticator.schemeName, parameters: realm.map { [AuthParameter("realm", $0)] } ?? []))
    }
}

extension AuthenticatorTable {
    static let ofTests = AuthenticatorTable(OfferKind.allCases.map(\.authenticator))
}

extension CredentialRequest {
    static func basic(_ realm: String, at origin: Origin = .wiki) -> CredentialRequest {
        CredentialRequest(OfferKind.basic.offer(realm), at: origin, previousFailureCount: 0)
    }
    static let ntlm = CredentialRequest(OfferKind.ntlm.offer(), at: .wiki, previousFailureCount: 0)
    static let ntlmInNegotiate = CredentialRequest(
        OfferKind.ntlmInNegotiate.offer(), at: .wiki, previousFailureCount: 0)
}

extension AcceptedAnswer {
    static let basic = AcceptedAnswer(
        OfferKind.basic.offer("Wiki"), at: .wiki, credential: PasswordCredential.jdoe.reference,
        preemption: .answer(.basic))

    static func ntlm(_ kind: OfferKind) -> AcceptedAnswer {
        AcceptedAnswer(
            kind.offer(), at: .wiki, credential: PasswordCredential.jdoe.reference, preemption: .dialogue)
    }
}

extension ExchangeMachine.Action {
    static func computeToken(_ kind: OfferKind, _ credential: PasswordCredential, serverToken: [UInt8]?) -> Self {
        .computeToken(
            TokenRequest(kind.offer(), .password(credential), serverToken.map { .reply(to: $0) } ?? .open))
    }
    static func fail(reason: String) -> Self { .fail(.init(.connectionLost, reason)) }

    /// The outcome without the parts that a transcript omits: parameters of challenges other than the realm, the realm
    /// of a rejection, and the answer for later requests.
    var summary: Self {
        switch self {
        case .ask(let request):
            .ask(
                CredentialRequest(
                    request.offer.summary, at: request.space.origin,
                    previousFailureCount: request.previousFailureCount))
        case .computeToken(let request):
            .computeToken(TokenRequest(request.offer.summary, request.credential, request.step))
        case .deliver(.accepted(let accepted)):
            .deliver(
                .accepted(
                    AcceptedAnswer(
                        accepted.offer.summary, at: accepted.space.origin, credential: accepted.credential,
                        preemption: .none)))
        case .deliver(.rejected(let space, let credential, let checks)):
            .deliver(
                .rejected(
                    AuthenticationSpace(origin: space.origin, realm: nil, scheme: space.scheme),
                    credential: credential, checks))
        case .send, .sendOpening, .deliver, .fail, .wait:
            self
        }
    }
}

extension Offer {
    fileprivate var summary: Offer {
        Offer(
            authenticator,
            Challenge(
                scheme: authenticator.schemeName,
                parameters: authenticator.realm(of: challenge).map { [AuthParameter("realm", $0)] } ?? []))
    }
}

extension ThreeChecks.Check {
    static let listed = ThreeChecks.Check.yes("listed at work.sites:3")
    static let offered = ThreeChecks.Check.yes("basic is offered and permitted")
    static let ntlmOffered = ThreeChecks.Check.yes("ntlm is offered and permitted")
    static let enrolled = ThreeChecks.Check.yes("credential \"enrollment\"")
    static let rejected = ThreeChecks.Check.no(
        Refusal(.rejected, "credential \"enrollment\" was rejected by the origin"))
}

extension ThreeChecks {
    static func checks(_ challenge: Check?, _ credential: Check? = nil) -> ThreeChecks {
        ThreeChecks(site: .listed, challenge: challenge, credential: credential)
    }
}

extension RequestContext {
    static func site(
        _ origin: Origin = .wiki, permitted: [AuthenticationScheme] = [.certificate, .ntlm, .basic],
        hasBody: Bool = false, accepted: AcceptedAnswer? = nil
    ) -> RequestContext {
        RequestContext(
            origin: origin, authenticators: .ofTests, site: .listed, permitted: permitted, plaintextPermitted: false,
            clientAuthorizes: false, originTrusted: true, hasBody: hasBody, accepted: accepted)
    }

    func with(_ change: (inout Self) -> Void) -> Self {
        var context = self
        change(&context)
        return context
    }
}

extension ExchangeMachine.Outcome {
    static func accepted(_ kind: OfferKind, realm: String? = nil, at origin: Origin = .wiki) -> Self {
        .accepted(
            AcceptedAnswer(
                kind.offer(realm), at: origin, credential: PasswordCredential.jdoe.reference, preemption: .none))
    }
    static func rejected(_ kind: OfferKind, _ challenge: ThreeChecks.Check) -> Self {
        .rejected(
            AuthenticationSpace(origin: .wiki, realm: nil, scheme: kind.authenticator.scheme),
            credential: PasswordCredential.jdoe.reference, .checks(challenge, .rejected))
    }
    static func handedBack(_ challenge: ThreeChecks.Check, _ credential: ThreeChecks.Check? = nil) -> Self {
        .handedBack(.checks(challenge, credential))
    }
}

extension Refusal {
    static let notContinued = Refusal(.notContinued("NTLM"), "origin did not continue NTLM")
    /// Of a token that there is nothing to compute from.
    static func noTicket(_ text: String) -> Refusal { Refusal(.noTicket, text) }
}
