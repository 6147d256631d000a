// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import CountersignSitePolicy
import CountersignTLS
import Synchronization
import Testing

@testable import CountersignAnswering
@testable import CountersignChallenges

/// A request to `https://a.example/p?q` as a driver without I/O knows it.
final class AnsweredExchange: AnsweredRequest {
    static let origin = Origin(scheme: .https, host: "a.example", port: 443)

    /// The reports to an observer, in short.
    final class News: Sendable {
        let lines = Mutex<[String]>([])

        func add(_ news: ChallengeObserver.News) {
            let line: String? =
                switch news {
                case .answered(_, let name, let path): "answered with \(name) \(path ?? "")"
                case .answeredUnasked(_, let path): "answered unasked \(path ?? "")"
                case .handedBack(_, let challenge, let checks, _, _):
                    "handed back \(challenge?.scheme ?? ""): \(checks.failure ?? "")"
                case .rejected(_, let name, _): "rejected \(name)"
                default: nil
                }
            if let line { lines.withLock { $0.append(line) } }
        }
    }

    let policy: Policy
    let rule: SiteRule?
    let answerServices: AnswerServices
    let news: News
    var context: RequestContext
    var channelBinding: ChannelBinding?
    var trustObstacle: Refusal?
    var clientObstacle: Refusal?
    var mayBegin = true
    /// The password that a person supplies instead of a rejected one.
    var supplied: PasswordCredential?
    var asksPerson = false

    private(set) var used: [String] = []
    private(set) var answered: [String] = []
    private(set) var beginnings = 0
    private(set) var forgotten = 0

    static let password = PasswordCredential(
        name: "enrollment", user: "jdoe", password: Secret(utf8: "pw"), generation: 1)
    static func token(_ text: String, _ generation: UInt64) -> TokenCredential {
        TokenCredential(name: "enrollment", token: Secret(utf8: text), generation: generation)
    }

    /// `options` are those of the site's line. `token`: that of a sign-in, which expires at `expiry`.
    init(
        _ options: String, password: PasswordCredential? = AnsweredExchange.password, token: String? = nil,
        expiry: Int64 = 2000, breaker: BreakerBoard = BreakerBoard(now: { 1000 }), renewer: TokenRenewer? = nil,
        scheme: (any Authenticator)? = nil
    ) throws {
        let news = News()
        self.news = news
        policy = Policy(
            sites: try SiteList(files: [("t.sites", "a.example \(options)")]),
            enrolled: .open(
                credentials: token == nil ? password.map { [$0.name: $0] } ?? [:] : [:],
                tokens: token.map { ["enrollment": Self.token($0, 1)] } ?? [:], identities: []),
            expiryTimes: token == nil ? [:] : ["enrollment": expiry],
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 1000 }),
            interceptionAuthority: nil, generation: 1)
        let verdict = policy.sites.verdict(for: Self.origin)
        rule = if case .answer(let rule) = verdict { rule } else { nil }
        context = policy.requestContext(to: Self.origin, verdict)
        if let scheme { context.authenticators = AuthenticatorTable([scheme] + context.authenticators.authenticators) }
        answerServices = AnswerServices(
            breaker: breaker, renewer: renewer, observer: ChallengeObserver { news.add($0) }, now: { 1000 })
    }

    var breaker: BreakerBoard { answerServices.breaker }
    var method: String { "GET" }
    var target: String { "/p?q" }
    func readContent(_ read: (UnsafeRawBufferPointer) -> Void) -> Bool { true }
    var answerInputs: AnswerInputs { AnswerInputs(fileTime: 0, random: { [UInt8](repeating: 0, count: $0) }) }
    var observedPath: String? { "/p" }

    func credentialDecision(in space: AuthenticationSpace) -> CredentialDecision {
        guard let rule else { return .performDefaultHandling(reason: .unlisted) }
        return policy.credentialDecision(for: rule, in: space) { _ in false }
    }

    func question(insteadOf refused: PasswordCredential, in space: AuthenticationSpace) -> Later.Question? {
        guard asksPerson else { return nil }
        return { [supplied] done in done(supplied) }
    }

    func uses(_ credential: CredentialReference) { used.append(credential.name) }
    func wasAnswered(in space: AuthenticationSpace, with credential: CredentialReference) {
        answered.append(credential.name)
    }
    func beginsAnew() { beginnings += 1 }
    func forgetAccepted() { forgotten += 1 }

    // MARK: Playing

    var dialogue = AnswerDialogue(ExchangeMachine(.unused))

    /// Begins the exchange; returns the first action in short.
    func begin() -> String {
        dialogue = AnswerDialogue(ExchangeMachine(context))
        return play(dialogue.started(for: self))
    }

    func respond(_ status: Int, _ challenges: String...) -> String {
        play(
            dialogue.responseReceived(
                status: status, challengeFields: challenges.map { ChallengeField($0) }, for: self))
    }

    /// The operation that waits for ``resume(_:)``.
    private(set) var later: Later?

    func resume(_ result: Later.Result) throws -> String {
        let awaited = try #require(later)
        later = nil
        return play(dialogue.resumed(awaited, with: result, for: self))
    }

    /// Performs an action as a driver does, and returns it in short.
    func play(_ action: AnswerDialogue.Action) -> String {
        switch action {
        case .send(let answer):
            dialogue.sends(answer?.field(for: self, answerInputs), isOpening: false)
            return answer == nil ? "send" : "send answer"
        case .sendOpening(let answer):
            dialogue.sends(answer.field(for: self, answerInputs), isOpening: true)
            return "send opening"
        case .openDialogue(let request): return play(dialogue.connected(for: request, self))
        case .later(let later):
            self.later = later
            return "wait for \(later.kind)"
        case .deliver(.notChallenged): return "not challenged"
        case .deliver(.accepted): return "accepted"
        case .deliver(.handedBack(let checks)): return "handed back: \(checks.failure ?? "")"
        case .deliver(.rejected(_, _, let checks)): return "rejected: \(checks.failure ?? "")"
        case .fail(let failure): return "fail: \(failure.reason)"
        case .wait: return "wait"
        }
    }

    func key(_ scheme: AuthenticationScheme, realm: String? = "r") -> Breaker.Key {
        Breaker.Key(
            space: AuthenticationSpace(origin: Self.origin, realm: realm, scheme: scheme),
            credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)))
    }
}

extension RequestContext {
    fileprivate static let unused = RequestContext(
        origin: AnsweredExchange.origin, authenticators: AuthenticatorTable([]), site: .no(.unlisted), permitted: [],
        plaintextPermitted: false, clientAuthorizes: false, originTrusted: false, hasBody: false)
}
