// SPDX-License-Identifier: Apache-2.0

import Certificates
import Challenges
import NTLM
import SitePolicy

/// One request's dialogue with a server that may challenge it, for programs with an HTTP client of their own: events
/// in, one action out. It does no input or output.
///
/// Report what happened, and do what the action says; the action's own documentation names the event that answers it.
/// An event that none of them asked for gives ``Action/fail(reason:)``. A response's head is held until the action says
/// what becomes of it; the body of one that is not delivered is read and dropped.
public struct ChallengeExchange: Sendable {
    /// What to do next.
    public enum Action: Equatable, Sendable {
        /// Send the whole request, with this `Authorization`, or as it is. Answered by
        /// ``ChallengeExchange/responseReceived(status:challenges:)``.
        case send(Authorization?)
        /// Send the request with this `Authorization`, without its body and with `Content-Length: 0` if it has one:
        /// NTLM's first message. Answered by ``ChallengeExchange/responseReceived(status:challenges:)``.
        case sendOpening(Authorization)
        /// Ask ``ChallengeController/handle(_:)``, or a person. Answered by
        /// ``ChallengeExchange/dispositionReceived(_:_:)``.
        case ask(AuthenticationChallenge)
        /// The response in hand is the final one.
        case deliver(Outcome)
        /// There is no response to deliver. The reason is a short sentence for people.
        case fail(reason: String)
        /// Nothing yet: that was an interim response.
        case wait
    }

    /// How a dialogue ended that has a response to deliver.
    public enum Outcome: Equatable, Sendable {
        /// The response was none to answer.
        case notChallenged
        /// The server took the answer.
        case accepted
        /// The server's 401, as it came; the error says which check failed.
        case handedBack(ChallengeError)
        /// The server's 401 to the answer. The credential is not tried there again until it changes.
        case rejected
    }

    /// What the next event has to be.
    private enum Due {
        case start
        case response
        case disposition
        case nothing
    }

    private let controller: ChallengeController
    private let origin: Origin
    private let rule: SiteRule?
    private let attempt = Attempt()
    private var machine: Challenges.ChallengeExchange
    private var due = Due.start
    private var tokens: TokenMaker

    /// A dialogue about a request to `url`, an absolute http or https URL.
    ///
    /// `serverIsTrusted` is the caller's verdict on the server's certificate: without it nothing is answered. Throws
    /// `invalidProtectionSpace` for a URL that names no site. A site that is not on the list is no error: its
    /// challenges are delivered as they come.
    public init(
        url: String, hasBody: Bool = false, serverIsTrusted: Bool = true, controller: ChallengeController
    ) throws(ChallengeError) {
        do throws(HostNameError) {
            origin = try AbsoluteURL(parsing: url).origin
        } catch {
            throw .invalid(error.detail, "write an absolute URL, such as https://git.corp.example/")
        }
        self.controller = controller
        let policy = controller.currentPolicy()
        let verdict = policy.sites.verdict(for: origin)
        if case .answer(let rule) = verdict { self.rule = rule } else { rule = nil }
        tokens = TokenMaker(
            domain: rule?.domain, servicePrincipalName: rule?.servicePrincipalName ?? "HTTP/\(origin.host)")
        let site: ThreeChecks.Check =
            controller.isIntegratedAuthenticationEnabled
            ? policy.siteCheck(verdict) : .no("integrated authentication is switched off")
        machine = .init(
            .init(
                origin: origin, site: site, permitted: rule?.answer ?? [],
                plaintextPermitted: rule?.answersPlaintext ?? false, clientAuthorizes: false,
                originTrusted: serverIsTrusted, hasBody: hasBody, domain: rule?.domain))
    }

    /// Whether the next request must go on the connection of the last one. When the dialogue is over: whether that
    /// connection speaks for the user now, and must serve nobody else.
    public var requiresSameConnection: Bool { machine.requiresSameConnection }

    // MARK: Events

    /// The request is about to go out.
    public mutating func started() -> Action {
        guard due == .start else { return outOfTurn("started") }
        return run(machine.started())
    }

    /// A TLS connection was made; `serverCertificate` is the DER of the server's own certificate. NTLM binds its answer
    /// to it (RFC 5929 §4), without which a server that requires Extended Protection refuses.
    public mutating func connected(serverCertificate: [UInt8]) {
        tokens.bind(to: (try? Certificate(der: serverCertificate))?.tlsServerEndPointHash)
    }

    /// A response's head came to what was sent last. `challenges` are the values of its `WWW-Authenticate` fields, in
    /// their order.
    public mutating func responseReceived(status: Int, challenges: [String]) -> Action {
        guard due == .response else { return outOfTurn("responseReceived") }
        let action = run(machine.responseReceived(status: status, challengeFields: challenges))
        guard action == .deliver(.accepted), !tokens.isFinalTokenRight(challenges) else { return action }
        return .fail(reason: "the server's last authentication token is wrong")
    }

    /// The question was answered, as ``ChallengeController/handle(_:)`` gives it.
    public mutating func dispositionReceived(_ disposition: ChallengeDisposition, _ credential: Credential?) -> Action {
        guard due == .disposition else { return outOfTurn("dispositionReceived") }
        switch disposition {
        case .useCredential:
            return run(machine.dispositionReceived(answer(with: credential)))
        case .performDefaultHandling:
            return run(machine.dispositionReceived(.performDefaultHandling(reason: "nobody answered the challenge")))
        case .rejectProtectionSpace:
            return run(machine.dispositionReceived(.rejectProtectionSpace(reason: "the challenge was rejected")))
        case .cancelAuthenticationChallenge:
            return run(.fail(reason: "the challenge was cancelled"))
        }
    }

    /// The connection was lost before a response. `requestMayRepeat`: the request is idempotent (RFC 9110 §9.2.2), or
    /// no byte of what was sent last has gone out.
    public mutating func connectionLost(requestMayRepeat: Bool = false) -> Action {
        guard due == .response || due == .disposition else { return outOfTurn("connectionLost") }
        return run(machine.connectionLost(requestMayRepeat: requestMayRepeat))
    }

    /// The last action cannot be done, as the request's body is no longer there.
    public mutating func replayImpossible() -> Action {
        guard due == .response || due == .disposition, machine.roundsAnswered > 0 || due == .disposition else {
            return outOfTurn("replayImpossible")
        }
        return run(machine.replayImpossible(reason: "the request's body cannot be sent again"))
    }

    private mutating func outOfTurn(_ event: String) -> Action {
        run(.fail(reason: "\(event) was reported out of turn"))
    }

    // MARK: The machine

    private mutating func run(_ action: Challenges.ChallengeExchange.Action) -> Action {
        var action = action
        while case .computeToken(let kind, let credential, let serverToken) = action {
            do throws(NTLMError) {
                action = machine.tokenComputed(try tokens.token(kind, credential, answering: serverToken))
            } catch {
                action = machine.tokenFailed(reason: error.detail)
            }
        }
        switch action {
        case .send(let authorization):
            due = .response
            return .send(authorization.map(Authorization.init))
        case .sendOpening(let authorization):
            due = .response
            return .sendOpening(Authorization(authorization))
        case .ask(let question):
            due = .disposition
            var challenge = AuthenticationChallenge(
                protectionSpace: ProtectionSpace(question.space),
                previousFailureCount: question.previousFailureCount)
            challenge.attempt = attempt
            return .ask(challenge)
        case .deliver(let outcome):
            due = .nothing
            return .deliver(conclude(outcome))
        case .fail(let reason):
            due = .nothing
            attempt.end(.inconclusive)
            return .fail(reason: reason)
        case .wait, .computeToken:
            return .wait
        }
    }

    private func answer(with credential: Credential?) -> Challenges.ChallengeDisposition {
        switch credential {
        case .password(let user, let password):
            let reference = password.reference ?? CredentialReference(name: "of the program", generation: 0)
            return .useCredential(
                .password(
                    PasswordCredential(
                        name: reference.name, user: user, password: password.secret, generation: reference.generation)))
        case .identity(let identity):
            return .useCredential(.identity(named: identity.name))
        case nil:
            return .performDefaultHandling(reason: "the answer came without a credential")
        }
    }

    private func conclude(_ outcome: Challenges.ChallengeExchange.Outcome) -> Outcome {
        switch outcome {
        case .notChallenged:
            attempt.end(.inconclusive)
            return .notChallenged
        case .accepted:
            attempt.end(.accepted)
            return .accepted
        case .handedBack(let checks):
            attempt.end(.inconclusive)
            return .handedBack(ChallengeError(checks, rule))
        case .rejected(let kind, let credential, _):
            attempt.end(.rejected)
            if credential.generation > 0 {
                let key = Breaker.Key(origin: origin, credential: credential.name, generation: credential.generation)
                let space = Challenges.ProtectionSpace(origin: origin, realm: nil, method: kind.method)
                controller.rejected(key, at: ProtectionSpace(space))
            }
            return .rejected
        }
    }
}

extension ProtectionSpace {
    /// The same in the words of the API.
    init(_ space: Challenges.ProtectionSpace) {
        let method: AuthenticationMethod =
            switch space.method {
            case .clientCertificate: .clientCertificate
            case .ntlm: .ntlm
            case .basic: .basic
            }
        self.init(
            scheme: space.origin.scheme.rawValue, host: space.origin.host, port: Int(space.origin.port),
            realm: space.realm, authenticationMethod: method)
    }
}

extension ChallengeError {
    /// The first of `checks` that failed.
    init(_ checks: ThreeChecks, _ rule: SiteRule?) {
        let code: Code =
            if !checks.site.passed {
                .siteNotAllowed
            } else if checks.challenge?.passed == false {
                .methodNotAnswered
            } else {
                .nothingToAnswerWith
            }
        self.init(code, checks.failure ?? "not answered", listLine: rule?.location)
    }
}
