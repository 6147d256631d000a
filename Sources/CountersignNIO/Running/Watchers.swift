// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
package import CountersignAnswering
import CountersignCertificates
import CountersignChallenges
package import CountersignEvents
package import CountersignPage

/// Those who watch a proxy, besides the readers of its keeper's events.
package struct Watchers: Sendable {
    package var meter: (any RequestMeter)?
    package var recorder: (any CredentialUseRecorder)?
    package var inventory: SiteInventory?
    /// The questions that wait for a person at lines with `approve=`.
    package var questions: @Sendable () -> [QuestionEvent] = { [] }
    /// Answers one of them. False if it does not wait any more.
    package var approve: @Sendable (_ id: UInt64, _ answer: String) -> Bool = { _, _ in false }
    /// The page in the browser, and what else is served in HTTP on the control socket.
    package var page: PageServer?

    package init() {}
}

extension ChallengeObserver {
    /// Reports to `events` what no request's end says, and everything to `other`.
    package static func telling(
        _ events: EventBoard, under policy: CurrentPolicy, and other: ChallengeObserver?
    ) -> ChallengeObserver {
        @Sendable func rule(of origin: Origin) -> String? { policy.current.sites.rule(for: origin)?.location }
        // The lines of a site may have different credentials.
        @Sendable func rule(sending name: String, to space: AuthenticationSpace) -> String? {
            let lines = policy.current.sites.rules(for: space.origin)
            let own = lines.first { name == (space.scheme == .certificate ? $0.identity : $0.credential) }
            return (own ?? lines.first)?.location
        }
        return
            ChallengeObserver(hearsUnasked: other?.hearsUnasked ?? false) { news in
                other?.tell(news)
                switch news {
                case .rejected(let space, let name, _):
                    events.tell(
                        .rejected(
                            site: space.origin.description, rule: rule(sending: name, to: space),
                            scheme: space.scheme.rawValue, realm: space.realm, credential: name))
                case .untrusted(let origin, let trust):
                    events.tell(
                        .untrusted(
                            site: origin.description, rule: rule(of: origin), reason: trust.text,
                            fingerprint: trust.leaf.map { CertificateFingerprint.text($0.sha256Fingerprint) }))
                case .distrusted(let client):
                    events.tell(
                        .distrusted(
                            site: client.origin.description, program: client.program, reason: client.sentence))
                case .unreached(let origin, let obstacle):
                    events.tell(.unreached(site: origin.description, reason: obstacle.word))
                case .answered, .answeredUnasked, .handedBack, .verified, .tunnelled, .refused: break
                }
            }
    }
}

extension ChallengeObserver.Obstacle {
    /// For the metrics, too: there are few of them.
    fileprivate var word: String {
        switch self {
        case .unknownName: "unknown name"
        case .network: "no connection"
        case .parent: "parent proxy"
        case .noRoute: "no route"
        case .closed: "closed"
        case .tooSlow: "too slow"
        case .tls: "tls"
        case .thisMachine: "this machine"
        case .other: "other"
        }
    }
}

extension Watchers {
    /// The first of the addresses of a proxy that a browser can be given; nil without one. A name below localhost may
    /// lead to the other loopback address, whose port another user could have.
    package static func addressForBrowsers(_ addresses: [String]) -> String? {
        addresses.first { $0.hasPrefix("127.") || $0.hasPrefix("[::1]:") }
    }
}

extension ControlReply {
    /// Answers what concerns those who watch.
    mutating func answer(_ request: ControlRequest, _ watchers: Watchers, _ addresses: [String]) {
        switch request {
        case .page: setPage(watchers.page, at: addresses)
        case .questions: questions = watchers.questions()
        case .approve(let id, let answer):
            guard !watchers.approve(id, answer) else { return }
            error = "no question with the number \(id) waits for this answer"
            hint = "`countersign approve` lists those that wait"
        case .status, .lock, .unlock, .restart, .route, .events, .clients, .perform, .pageEnded: break
        }
    }

    /// Answers ``ControlRequest/page``.
    mutating func setPage(_ page: PageServer?, at addresses: [String]) {
        guard let page else {
            error = "this server has no page"
            return
        }
        guard let address = Watchers.addressForBrowsers(addresses) else {
            error = "the page needs a loopback address of TCP, and the server has none"
            hint = "add --listen 127.0.0.1:0 to the options of `countersign serve`"
            return
        }
        self.page = "http://\(address)/#\(page.makeToken())"
    }
}
