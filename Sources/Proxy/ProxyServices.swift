// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignCryptography
import CountersignEvents
import CountersignHTTP1
import CountersignParents
import CountersignUpstream
import NIOConcurrencyHelpers
import Synchronization

/// The services that all event loops of a proxy share.
package final class ProxyServices: Sendable {
    package let configuration: ProxyConfiguration
    package let policy: CurrentPolicy
    package let breaker: BreakerBoard
    package let acceptedAnswers = ProtectionSpaceCache()
    /// The shared sessions of the home.
    let sessions: SessionStore
    let leaves = LeafCache()
    let spoolBudget: SpoolBudget
    /// Asks the person about requests to lines with `approve=`; nil if there is nobody to ask.
    let approvals: ApprovalBoard?
    /// Receives each request and tunnel that has ended.
    let journal: Journal
    /// Decides about listed origins whose certificate does not verify and for which there is no trust exception.
    let serverTrustDecider: (any ServerTrustDecider)?
    /// Supplies another credential when an origin rejects the one that its site's line names.
    let delegateCredentials: ReplacementCredentials?
    /// Receives reports on whether origins accept client identities.
    let identityRefresher: IdentityRefresher?
    /// The services that the dialogues about challenges share.
    let answers: AnswerServices
    /// Gets the identity broker's header.
    let brokerCookies: BrokerCookies
    /// Receives the outcome of each challenge.
    let observer: ChallengeObserver?
    /// The next hops of requests; nil if every connection is direct.
    let routes: (any RouteFinding)?
    /// Receives the responses to a window's pages.
    let responses: ResponseObserver?
    /// Receives a sentence and a hint about each origin whose certificate does not verify or whose revocation status is
    /// unknown, once for each certificate and reason, and about each client that does not trust the CA.
    private let untrusted: (@Sendable (_ sentence: String, _ hint: String?) -> Void)?
    /// Receives a sentence about each fault of this program itself.
    private let ownFault: @Sendable (_ sentence: String) -> Void
    /// The searches for clients' processes.
    let lookups = OwnerLookups()
    let http1Origins = HTTP1Origins()
    let acceptedTokens = AcceptedTokens()
    /// A thread is searching for a client's program.
    let isIdentifying = Atomic(false)
    private let toldUntrusted = NIOLockedValueBox<Set<String>>([])
    /// When clients that do not trust the CA were reported last, by the sentence without the process.
    private let toldDistrust = NIOLockedValueBox<[String: Int64]>([:])
    /// The name of this process in `Via` (RFC 9110 §7.6.3), which is new in each run.
    let pseudonym: String
    private let via: (http1: ViaField, http2: ViaField)
    /// The current time in seconds since 1970.
    let wallClock: @Sendable () -> Int64

    package init(
        configuration: ProxyConfiguration, policy: CurrentPolicy, accessLog: AccessLog?,
        events: EventBoard? = nil, meter: (any RequestMeter)? = nil, recorder: (any CredentialUseRecorder)? = nil,
        inventory: SiteInventory? = nil, approvals: ApprovalBoard? = nil,
        breaker: BreakerBoard? = nil, sessions: SessionStore? = nil,
        serverTrustDecider: (any ServerTrustDecider)? = nil, delegateCredentials: ReplacementCredentials? = nil,
        identityRefresher: IdentityRefresher? = nil, tokenRenewer: TokenRenewer? = nil,
        scopeAsker: ScopeAsker? = nil, brokerCookies: BrokerCookies = .none,
        observer: ChallengeObserver? = nil, routes: (any RouteFinding)? = nil, responses: ResponseObserver? = nil,
        untrusted: (@Sendable (_ sentence: String, _ hint: String?) -> Void)? = nil,
        ownFault: @escaping @Sendable (_ sentence: String) -> Void = { _ in },
        pseudonym: String,
        wallClock: @escaping @Sendable () -> Int64
    ) {
        self.configuration = configuration
        spoolBudget = SpoolBudget(limitBytes: configuration.spoolLimitBytes)
        self.policy = policy
        self.approvals = approvals
        journal = Journal(log: accessLog, events: events, meter: meter, recorder: recorder, inventory: inventory)
        let breaker = breaker ?? BreakerBoard(now: wallClock)
        self.breaker = breaker
        answers = AnswerServices(
            breaker: breaker, renewer: tokenRenewer, scopeAsker: scopeAsker, observer: observer, now: wallClock)
        self.sessions = sessions ?? SessionStore(isPublicSuffix: { _ in true })
        self.serverTrustDecider = serverTrustDecider
        self.delegateCredentials = delegateCredentials
        self.identityRefresher = identityRefresher
        self.brokerCookies = brokerCookies
        self.observer = observer
        self.routes = routes
        self.responses = responses
        self.untrusted = untrusted
        self.ownFault = ownFault
        self.pseudonym = pseudonym
        via = (ViaField("1.1 \(pseudonym)"), ViaField("2 \(pseudonym)"))
        self.wallClock = wallClock
    }

    /// Added to a message that is forwarded. `isHTTP2`: it was received over HTTP/2.
    func via(isHTTP2: Bool) -> ViaField { isHTTP2 ? via.http2 : via.http1 }

    /// The value of Via in a CONNECT of our own that serves a client's with the values `received`.
    func via(after received: [String]) -> String { (received + ["1.1 \(pseudonym)"]).joined(separator: ", ") }

    /// The largest number of sentences that are remembered. Beyond it, they may be repeated.
    private static let untrustedLimit = 1024

    /// Reports an origin whose certificate does not verify.
    func tellUntrusted(_ origin: Origin, _ trust: ServerTrust) {
        guard let untrusted else { return }
        let sentence = "the certificate of \(origin) does not verify: \(trust.text)\(Self.leafText(trust))"
        if isNew(sentence) { untrusted(sentence, trust.missingIssuer.map(TrustHint.anchor)) }
    }

    /// Reports an origin whose certificate verifies, but may be revoked: its status should have been learned.
    func tellUnknownRevocation(of origin: Origin, _ trust: ServerTrust) {
        guard let untrusted, case .unknown(let why) = trust.revocation,
            case .answer(let rule) = policy.current.sites.verdict(for: origin, client: .anyone), rule.revocation != .off
        else { return }
        let sentence = "the revocation status of \(origin) is unknown: \(why)\(Self.leafText(trust))"
        if isNew(sentence) { untrusted(sentence, nil) }
    }

    /// Reports a client that does not trust the CA: each program and site once per minute. One that has sent no request
    /// gets no line in the log, because browsers open connections in advance.
    func tellDistrust(_ distrust: ClientDistrust) {
        observer?.tell(.distrusted(distrust))
        guard let untrusted, distrust.sign != .noRequest else { return }
        let client = "\(distrust.program ?? "") \(distrust.origin)"
        let now = wallClock()
        let isNew = toldDistrust.withLockedValue { told in
            if let last = told[client], (0..<60).contains(now - last) { return false }
            if told.count >= Self.untrustedLimit { told.removeAll() }
            told[client] = now
            return true
        }
        if isNew { untrusted(distrust.sentence, ClientDistrust.hint) }
    }

    /// Reports that something was about to be sent that must not be. It was not.
    func tellOwnFault(_ detail: String) { ownFault("a fault in countersign itself was stopped: \(detail)") }

    private static func leafText(_ trust: ServerTrust) -> String {
        trust.leaf.map { ", certificate \(CertificateFingerprint.text($0.sha256Fingerprint))" } ?? ""
    }

    private func isNew(_ sentence: String) -> Bool {
        toldUntrusted.withLockedValue { told in
            if told.count >= Self.untrustedLimit { told.removeAll() }
            return told.insert(sentence).inserted
        }
    }
}
