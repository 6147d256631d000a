// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignAnswering
import CountersignCertificates
package import CountersignChallenges
import CountersignSitePolicy
import Synchronization

/// The most entries of each kind that are kept.
private let limit = 1024

/// The challenges that a proxy could not answer, and the commands that help: for the summary of `exec`, and for `test`.
package final class UnansweredSites: Sendable {
    /// A site that did not receive the answer it asked for.
    package struct Site: Equatable, Sendable {
        package let origin: Origin
        /// The path of the first request, without the query, if the site has accepted other requests; otherwise nil.
        package var path: String?
        /// A short sentence without a full stop.
        package let reason: String
        /// The remedies, best first.
        package let remedies: [Remedy]
        /// Whether ``reason`` contains the remedy, too.
        package var isSaidWithRemedy = false

        /// A command in backquotes with its requirements, or a sentence; nil if nothing helps.
        package var remedy: String? { Remedy.sentence(remedies) }

        /// Whether the client may get an answer itself.
        var isUpToClient: Bool { if case .clientObtainsToken? = remedies.first { true } else { false } }

        /// `https://git.corp.example: no credential "enrollment" is enrolled: …`.
        package var sentence: String {
            "\(origin.shortText)\(path ?? ""): \(reason)" + (isSaidWithRemedy ? "" : remedy.map { ": \($0)" } ?? "")
        }
    }

    /// The part of a site that was not answered. An answer to one part does not answer the others.
    private struct Part: Hashable {
        enum Kind: Hashable {
            case realm(String?)
            /// A client certificate.
            case identity
            /// The certificate of the site.
            case trust
        }

        let origin: Origin
        let kind: Kind

        init(_ origin: Origin, _ kind: Kind) {
            self.origin = origin
            self.kind = kind
        }

        /// The part to which an answer gives access.
        init(_ space: AuthenticationSpace) {
            self.init(space.origin, space.scheme == .certificate ? .identity : .realm(space.realm))
        }
    }

    private struct Failure {
        var site: Site
        /// The paths that were not answered, in order.
        var paths: [String] = []
    }

    private struct State {
        /// In the order in which they were seen.
        var failures: [(part: Part, failure: Failure)] = []
        /// Sites that may be content nevertheless: they asked for a client certificate and continued without one, or
        /// the client gets a token itself.
        var uncertain: [Origin: Site] = [:]
        var tunnelled: [Origin: Refusal] = [:]
        var refused: [Origin: Refusal] = [:]
        var unreached: [Origin: ChallengeObserver.Obstacle] = [:]
        /// The order in which the sites were seen.
        var order: [Origin] = []
        var answers: [(space: AuthenticationSpace, name: String)] = []
        var answered: Set<Origin> = []
        /// The last answers that were rejected.
        var rejections: [Origin: (space: AuthenticationSpace, name: String)] = [:]
        /// The last checks of challenges that were handed back.
        var checks: [Origin: ThreeChecks] = [:]
        /// Those of requests for a client certificate that got none.
        var certificateChecks: [Origin: ThreeChecks] = [:]
        /// Why certificates do not verify.
        var untrusted: [Origin: String] = [:]
        /// The clients that left the handshake in which they were shown a certificate of the local CA.
        var distrusting: [ClientDistrust] = []
        /// The revocation statuses of certificates that verify.
        var revocations: [Origin: String] = [:]

        func isUntrusted(_ origin: Origin) -> Bool { failures.contains { $0.part == Part(origin, .trust) } }

        /// A part was not answered for `path`. Its first reason is kept, unless the new one `replaces` it.
        mutating func failed(_ part: Part, _ path: String?, _ site: Site, replaces: Bool) {
            if let index = failures.firstIndex(where: { $0.part == part }) {
                if replaces { failures[index].failure.site = site }
                guard let path, failures[index].failure.paths.count < limit else { return }
                if !failures[index].failure.paths.contains(path) { failures[index].failure.paths.append(path) }
            } else if failures.count < limit {
                failures.append((part, Failure(site: site, paths: path.map { [$0] } ?? [])))
            }
        }

        /// A request for `path` was answered, even if an earlier one was not.
        mutating func answered(_ space: AuthenticationSpace, _ path: String?) {
            answered.insert(space.origin)
            failures = failures.compactMap { part, failure in
                guard part.origin == space.origin, part.kind != .trust else {
                    return part.origin == space.origin ? nil : (part, failure)
                }
                guard let path else { return part == Part(space) ? nil : (part, failure) }
                var failure = failure
                let hadPaths = !failure.paths.isEmpty
                failure.paths.removeAll { $0 == path }
                return hadPaths && failure.paths.isEmpty ? nil : (part, failure)
            }
        }
    }

    private let state = Mutex(State())
    private let policy: CurrentPolicy

    /// `policy` has the list and the credentials on which the remedies depend.
    package init(policy: CurrentPolicy) { self.policy = policy }

    /// Receives the proxy's events.
    package var observer: ChallengeObserver { ChallengeObserver { [self] in take($0) } }

    private func take(_ news: ChallengeObserver.News) {
        state.withLock { state in
            func note(_ origin: Origin) { if !state.order.contains(origin) { state.order.append(origin) } }
            switch news {
            case .answered(let space, let name, let path):
                state.answered(space, path)
                state.answers.append((space, name))
            case .answeredUnasked(let space, let path):
                if !state.failures.isEmpty { state.answered(space, path) }
            case .rejected(let space, let name, let path):
                note(space.origin)
                state.rejections[space.origin] = (space, name)
                state.failed(Part(space), path, rejected(space, name), replaces: true)
            case .untrusted(let origin, let trust):
                note(origin)
                state.untrusted[origin] = trust.text
                state.failed(Part(origin, .trust), nil, untrusted(origin, trust), replaces: true)
            case .handedBack(let origin, let challenge, let checks, let rule, let path):
                if challenge != nil { state.checks[origin] = checks } else { state.certificateChecks[origin] = checks }
                // The certificate has been reported already, and a client with credentials of its own wants no help.
                guard let site = handedBack(origin, challenge, checks, rule), !state.isUntrusted(origin) else { return }
                note(origin)
                if let challenge, !site.isUpToClient {
                    state.failed(Part(origin, .realm(challenge.realm)), path, site, replaces: false)
                } else {
                    state.uncertain[origin] = site
                }
            case .verified(let origin, let trust):
                guard state.revocations.count < limit else { return }
                state.revocations[origin] = trust.revocation.description
            case .tunnelled(let origin, let reason):
                guard state.tunnelled.count < limit else { return }
                note(origin)
                state.tunnelled[origin] = reason
                state.unreached[origin] = nil
            case .refused(let origin, let reason):
                guard state.refused.count < limit else { return }
                note(origin)
                state.refused[origin] = reason
            case .unreached(let origin, let obstacle):
                guard state.unreached.count < limit else { return }
                state.unreached[origin] = obstacle
            case .distrusted(let client):
                guard state.distrusting.count < limit else { return }
                state.distrusting.append(client)
            }
        }
    }

    // MARK: Results

    /// The sites that refused requests were for or whose challenge was not answered, in the order in which they were
    /// seen; a site with several realms may occur several times. If the command failed, also those that may have
    /// challenged: the ones that asked for a client certificate or a token of the client's own, and those in tunnels,
    /// whose challenges the proxy does not see.
    package func sites(hasFailed: Bool) -> [Site] {
        let state = state.withLock { $0 }
        return state.order.flatMap { origin -> [Site] in
            let failed = state.failures.filter { $0.part.origin == origin }.map { _, failure in
                var site = failure.site
                if state.answered.contains(origin) { site.path = failure.paths.first }
                return site
            }
            if !failed.isEmpty { return failed }
            if let reason = state.refused[origin] { return [site(reason, at: origin)] }
            guard hasFailed else { return [] }
            if let site = state.uncertain[origin] { return [site] }
            // The origin has not challenged any client.
            guard state.unreached[origin] == nil else { return [] }
            return state.tunnelled[origin].map { [self.site($0, at: origin)] } ?? []
        }
    }

    /// A sentence about each program that does not trust the local CA, in the order in which they were seen. If the
    /// command failed, also about those that may not.
    package func distrust(hasFailed: Bool) -> [String] {
        var sentences: [String] = []
        for client in state.withLock({ $0.distrusting }) where hasFailed || client.sign.isCertain {
            if !sentences.contains(client.sentence) { sentences.append(client.sentence) }
        }
        return sentences
    }

    /// The answers that origins have accepted.
    package var answers: [(space: AuthenticationSpace, name: String)] { state.withLock { $0.answers } }

    /// Why the origin's certificate does not verify; nil if it does, or was not seen.
    package func untrustedReason(of origin: Origin) -> String? { state.withLock { $0.untrusted[origin] } }

    /// Why there was no response of the origin, if that has happened.
    package func obstacle(to origin: Origin) -> ChallengeObserver.Obstacle? { state.withLock { $0.unreached[origin] } }

    /// The revocation status of the origin's certificate; nil if the certificate does not verify or was not seen.
    package func revocation(of origin: Origin) -> String? { state.withLock { $0.revocations[origin] } }

    package var hasUntrusted: Bool { state.withLock { !$0.untrusted.isEmpty } }

    /// The answer that the origin has rejected.
    package func rejection(of origin: Origin) -> (space: AuthenticationSpace, name: String)? {
        state.withLock { $0.rejections[origin] }
    }

    /// The checks of a challenge that was handed back.
    package func checks(of origin: Origin) -> ThreeChecks? { state.withLock { $0.checks[origin] } }

    /// The checks of a request for a client certificate that got none.
    package func certificateChecks(of origin: Origin) -> ThreeChecks? {
        state.withLock { $0.certificateChecks[origin] }
    }

    // MARK: Remedies

    private func rejected(_ space: AuthenticationSpace, _ name: String) -> Site {
        let kind = space.scheme == .certificate ? "identity" : "credential"
        return Site(
            origin: space.origin, reason: "\(kind) \"\(name)\" was rejected",
            remedies: policy.current.remedies(afterRejectionOf: name, in: space))
    }

    private func untrusted(_ origin: Origin, _ trust: ServerTrust) -> Site {
        Site(origin: origin, reason: trust.text, remedies: [Remedy(trust, at: origin)].compactMap(\.self))
    }

    /// Nil if no client expects an answer.
    private func handedBack(
        _ origin: Origin, _ challenge: Challenge?, _ checks: ThreeChecks, _ rule: SiteRule?
    ) -> Site? {
        guard let refusal = checks.refusal, refusal.cause != .ownAuthorization, checks.site.passed || rule == nil
        else { return nil }
        return site(refusal, UnansweredRequest(origin, rule, challenge))
    }

    /// Of a site that no client has asked for an answer of a certain kind.
    private func site(_ refusal: Refusal, at origin: Origin) -> Site {
        site(
            refusal,
            UnansweredRequest(origin, policy.current.sites.rule(for: origin), nil as AuthenticationScheme?))
    }

    private func site(_ refusal: Refusal, _ request: UnansweredRequest) -> Site {
        Site(
            origin: request.origin, reason: refusal.text, remedies: policy.current.remedies(for: refusal, of: request),
            isSaidWithRemedy: refusal.cause.isSaidWithRemedy)
    }
}
