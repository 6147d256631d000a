// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignHTTP1
import CountersignSitePolicy
import CountersignUpstream

/// The cause of an exchange's request, if a field says that it may be a page of another origin. An object, so that
/// other requests pay for a comparison with nil only.
final class ForeignCause {
    let cause: RequestCause
    let verdict: RequestCause.Verdict
    /// The request gets no credential.
    let isRefused: Bool
    /// The origin has asked for a client certificate, and got none because of the cause.
    var hasDeclinedIdentity = false
    /// A cookie of a shared session or the identity broker's header was added.
    var addedSecret = false

    private init(_ cause: RequestCause, _ verdict: RequestCause.Verdict) {
        self.cause = cause
        self.verdict = verdict
        isRefused = if case .refused = verdict { true } else { false }
    }

    /// Nil if the request may get everything: it has no field that names its cause, or there is no credential for the
    /// origin, and the client has not authenticated itself there.
    static func of(_ head: RequestHead, _ route: Route, _ session: ClientSession) -> ForeignCause? {
        guard route.challenger == nil,
            route.isListed && route.hasCredential || session.hasAuthenticated(itselfTo: route.origin),
            head.fields.mayNameCause
        else { return nil }
        let cause = RequestCause(
            to: route.origin, isSafe: head.method == .get || head.method == .head,
            isWebSocket: head.fields.list(.upgrade, contains: "websocket")
        ) { head.fields.values(named: $0.rawValue) }
        let sites = route.policy.sites
        let verdict = cause.verdict(crossSite: route.siteRule?.crossSite ?? []) { page in
            page.origin.map { sites.rule(for: $0) != nil } ?? false
        }
        return ForeignCause(cause, verdict)
    }

    /// Why the request gets no credential; nil if it may get one.
    var refusal: RequestCause.Refusal? { if case .refused(let refusal) = verdict { refusal } else { nil } }

    /// The page of another origin that is permitted to read the response, apart from a navigation.
    var reader: PageOrigin? { if case .permitted(let page, _) = verdict { page } else { nil } }
}

extension ExchangeDriver {
    /// Whether the request is sent without any credential, on a connection without authentication.
    var withholdsCredential: Bool { foreignCause?.isRefused == true }

    /// Answers a certificate request without a certificate, because of the cause of the request.
    func certificateDecliner(_ rule: SiteRule) -> CertificateSource? {
        guard let foreignCause, let refusal = foreignCause.refusal else { return nil }
        return { _, connection, answer in
            foreignCause.hasDeclinedIdentity = true
            connection.lacksIdentity = true
            connection.certificateChecks = ThreeChecks(
                site: .yes("listed at \(rule.location)"), challenge: .no(refusal.refusal))
            answer(nil)
        }
    }

    /// A failure of the origin that may be due to the certificate which it did not get.
    func explained(_ response: OwnResponse) -> OwnResponse {
        guard let foreignCause, foreignCause.hasDeclinedIdentity, let refusal = foreignCause.refusal else {
            return response
        }
        var response = response
        response.detail += "; client certificate not sent: \(refusal.text)"
        return response
    }

    /// Whether a page of another origin must not read a response: it was obtained with a credential of ours, and does
    /// not permit this page to read responses to requests with credentials.
    func hides(_ response: BufferedResponse) -> Bool {
        guard let foreignCause, let reader = foreignCause.reader else { return false }
        guard
            answers.sent != nil || foreignCause.addedSecret || connection?.hasShownIdentity == true
                || mayBeAnswered && connection?.isAuthenticated == true
        else { return false }
        return !response.head.fields.allowsCredentials(to: reader.description)
    }
}
