// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignChallenges

/// A dialogue as a transcript: what the driver reports, and the action that is to come back.
enum Line {
    case event(ExchangeMachine.Event)
    case expect(ExchangeMachine.Action)
    /// The checks that are known by now.
    case checks(ThreeChecks)
    case sameConnection(Bool)
}

extension Line {
    static func response(_ status: Int, _ fields: String...) -> Line {
        .event(.responseReceived(status: status, challengeFields: fields))
    }
    static func disposition(_ disposition: CredentialDecision) -> Line { .event(.decisionReceived(disposition)) }
    static func token(_ token: [UInt8]) -> Line { .event(.tokenComputed(token)) }
    static let lost = Line.event(.connectionLost(requestMayRepeat: false))
    static let lostButMayRepeat = Line.event(.connectionLost(requestMayRepeat: true))
}

/// Reads `lines` to an exchange on `terms`, through its package verbs; each event's action must be the next line.
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
            #expect(pending == action, "line \(index)", sourceLocation: sourceLocation)
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

/// On the terms of a listed https site that knows nothing yet.
@discardableResult
func play(_ lines: [Line], sourceLocation: SourceLocation = #_sourceLocation) -> ExchangeMachine {
    play(.site(), lines, sourceLocation: sourceLocation)
}

extension ExchangeMachine {
    mutating func report(_ event: Event) -> Action {
        switch event {
        case .started: started()
        case .responseReceived(let status, let fields): responseReceived(status: status, challengeFields: fields)
        case .decisionReceived(let disposition): decisionReceived(disposition)
        case .tokenComputed(let token): tokenComputed(token)
        case .tokenFailed(let reason): tokenFailed(reason: reason)
        case .connectionLost(let mayRepeat): connectionLost(requestMayRepeat: mayRepeat)
        case .replayImpossible(let reason): replayImpossible(reason: reason)
        }
    }
}

// MARK: The people of the play

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
    /// jdoe's answer to a Basic challenge.
    static let basic = AuthorizationField(scheme: "Basic", credentials: Array("jdoe:canary-password".utf8))
    static let opening = AuthorizationField(scheme: "NTLM", credentials: [1])
    static let answer = AuthorizationField(scheme: "NTLM", credentials: [3])
}

extension CredentialRequest {
    static func basic(_ realm: String, at origin: Origin = .wiki) -> CredentialRequest {
        CredentialRequest(
            space: AuthenticationSpace(origin: origin, realm: realm, method: .basic), previousFailureCount: 0)
    }
    static let ntlm = CredentialRequest(
        space: AuthenticationSpace(origin: .wiki, realm: nil, method: .ntlm), previousFailureCount: 0)
}

extension ExchangeMachine.Learned {
    static let basic = ExchangeMachine.Learned.basic(
        .basic, realm: "Wiki", credential: PasswordCredential.jdoe.reference)
}

extension ThreeChecks.Check {
    static let listed = ThreeChecks.Check.yes("listed at work.sites:3")
    static let offered = ThreeChecks.Check.yes("basic is offered and permitted")
    static let ntlmOffered = ThreeChecks.Check.yes("ntlm is offered and permitted")
    static let enrolled = ThreeChecks.Check.yes("credential \"enrollment\"")
    static let rejected = ThreeChecks.Check.no("credential \"enrollment\" was rejected by the origin")
}

extension ThreeChecks {
    static func checks(_ challenge: Check?, _ credential: Check? = nil) -> ThreeChecks {
        ThreeChecks(site: .listed, challenge: challenge, credential: credential)
    }
}

extension RequestContext {
    static func site(
        _ origin: Origin = .wiki, permitted: [AuthenticationScheme] = [.certificate, .ntlm, .basic],
        hasBody: Bool = false,
        learned: ExchangeMachine.Learned? = nil
    ) -> RequestContext {
        RequestContext(
            origin: origin, site: .listed, permitted: permitted, plaintextPermitted: false, clientAuthorizes: false,
            originTrusted: true, hasBody: hasBody, learned: learned)
    }

    func with(_ change: (inout Self) -> Void) -> Self {
        var context = self
        change(&context)
        return context
    }
}

extension ExchangeMachine.Outcome {
    static func accepted(_ kind: OfferKind, realm: String? = nil) -> Self {
        .accepted(kind, credential: PasswordCredential.jdoe.reference, realm: realm)
    }
    static func rejected(_ kind: OfferKind, _ challenge: ThreeChecks.Check) -> Self {
        .rejected(kind, credential: PasswordCredential.jdoe.reference, .checks(challenge, .rejected))
    }
    static func handedBack(_ challenge: ThreeChecks.Check, _ credential: ThreeChecks.Check? = nil) -> Self {
        .handedBack(.checks(challenge, credential))
    }
}
