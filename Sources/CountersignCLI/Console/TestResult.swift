// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
import CountersignChallenges
import CountersignAnswering
import CountersignHTTP1
import CountersignProxy
import CountersignReporting
import CountersignSitePolicy
import Glibc

/// The output of `countersign test`: the route of one request, and the next step.
struct TestResult: Encodable {
    let site: String
    /// `direct`, or the next hops with their reasons.
    let route: String
    /// How the proxy handled the request.
    let handling: String
    /// The first check.
    let listed: String
    /// The pages of other origins that the site's line permits; nil for none.
    let crossSite: String?
    /// The second and third check; nil if the site did not challenge.
    let permitted: String?
    let credential: String?
    /// Whether the server's certificate verifies; nil over http, and if the server was not reached.
    let trust: String?
    /// The revocation status of a certificate that verifies.
    let revocation: String?
    /// The version of HTTP in which the site responded; nil if it did not, and in a tunnel.
    let version: String?
    /// The challenges of the response that was delivered.
    let challenges: [String]
    /// The scheme and credential that the site accepted; nil if none was needed or sent.
    let answered: String?
    /// The same for an answer that the site rejected.
    let rejected: String?
    let status: Int
    /// Why there is no response of the site.
    let error: String?
    /// A command or a sentence.
    let next: String
    let isGood: Bool

    private enum CodingKeys: String, CodingKey {
        case site, route, handling, listed, permitted, credential, trust, revocation, version, challenges, answered,
            rejected, status, error, next
        case crossSite = "cross-site"
        case isGood = "ok"
    }

    /// `route` has the hops of the request; empty without a route.
    init(
        _ url: AbsoluteURL, _ response: CurlClient.Response, _ unanswered: UnansweredSites, _ policy: Policy,
        route hops: [RouteHop]
    ) {
        let origin = url.origin
        let explanation = Explanation(
            of: origin, SiteRequest(method: "GET", target: ArraySlice(url.path.utf8)), policy: policy,
            now: Int64(time(nil)))
        // A parent answers before the site.
        let all = unanswered.sites(hasFailed: true)
        let failed = all.first { $0.origin.scheme == .proxy } ?? all.first { $0.origin == origin }
        let answer = unanswered.answers.last { $0.space.origin == origin }
        let isTunnel = explanation.handling == .tunnel
        site = origin.description
        route = hops.isBySetting ? hops.isEmpty ? "none" : hops.sentence : RouteHop.direct.hop
        handling = explanation.handlingText
        listed = Self.text(explanation.site)
        crossSite = explanation.pagesText
        status = response.status
        challenges = response.values(of: "www-authenticate")
        let refusal = response.values(of: "proxy-status").first
        error = Self.error(response, refusal)
        let untrusted = unanswered.untrustedReason(of: origin)
        // A site that wants a certificate often shows it only by an error.
        let wantsCertificate = response.status >= 400 && unanswered.certificateChecks(of: origin) != nil
        trust =
            if origin.scheme == .http {
                nil
            } else if let untrusted {
                "no: \(untrusted)"
            } else if isTunnel, response.isCertificateRefused {
                "no: the client cannot verify the certificate"
            } else if response.failure == nil {
                explanation.trustExceptions.isEmpty ? "yes: the certificate verifies" : "yes: by a trust exception"
            } else {
                nil
            }
        revocation = unanswered.revocation(of: origin)
        version = Self.version(response)
        let checks =
            unanswered.checks(of: origin) ?? (wantsCertificate ? unanswered.certificateChecks(of: origin) : nil)
        let rejection = answer == nil ? unanswered.rejection(of: origin) : nil
        let sent = answer ?? rejection
        let isChallenged = response.status == 401 || answer != nil || checks != nil
        permitted =
            sent.map { "yes: \($0.space.scheme.rawValue)" } ?? (isChallenged ? checks?.challenge.map(Self.text) : nil)
        credential =
            sent.map { "yes: \"\($0.name)\"" } ?? (isChallenged ? checks?.credential.map(Self.text) : nil)
        answered = answer.map { answer in
            let realm = answer.space.realm.map { ", realm \($0.debugDescription)" } ?? ""
            return "\(answer.space.scheme.rawValue) with \"\(answer.name)\"\(realm)"
        }
        rejected = rejection.map { "\($0.space.scheme.rawValue) with \"\($0.name)\"" }
        isGood =
            response.failure == nil && !wantsCertificate && ![0, 401, 407, 502, 503, 504].contains(response.status)
        let isOpen = explanation.site.passed || !isTunnel && origin.scheme == .http || response.status < 400
        let context = NextStep(url: url, explanation: explanation, response: response, route: hops)
        next =
            if isGood {
                isOpen
                    ? "nothing: the site responded"
                    : context.listing.map { "if the site needs a login, \($0)" }
                        ?? "nothing: the site responded"
            } else {
                context.sentence(failed, isTunnel: isTunnel, unanswered)
            }
    }

    /// Why the site did not respond.
    private static func error(_ response: CurlClient.Response, _ refusal: String?) -> String? {
        let isRefused = [403, 407, 502, 503, 504].contains(response.status)
        if isRefused, let refusal, let details = ProxyStatus.parameter("details", of: refusal) { return details }
        return response.failure
    }

    /// The proxy's member of Via, which is the last one, begins with the version that it has received (RFC 9110
    /// §7.6.3).
    private static func version(_ response: CurlClient.Response) -> String? {
        guard let received = response.values(of: "via").last?.split(separator: ",").last?.split(separator: " ").first
        else { return nil }
        return "HTTP/\(received)"
    }

    private static func text(_ check: ThreeChecks.Check) -> String {
        (check.passed ? "yes: " : "no: ") + check.reason
    }

    private var unansweredText: String {
        if !challenges.isEmpty { return "no" }
        return status == 0 || error != nil ? "no: no request was sent" : "no: the site did not challenge"
    }

    /// One line per field.
    var text: String {
        var rows = [["site", site], ["route", "\(route), \(handling)"], ["listed", listed]]
        if let crossSite { rows.append(["cross-site", crossSite]) }
        rows.append(["permitted", permitted ?? "not checked"])
        rows.append(["credential", credential ?? "not checked"])
        if let trust { rows.append(["trust", trust]) }
        if let revocation { rows.append(["revocation", revocation]) }
        if let version { rows.append(["version", version]) }
        for challenge in challenges { rows.append(["challenge", challenge]) }
        rows.append(["answered", answered ?? rejected.map { "\($0): rejected" } ?? unansweredText])
        if let error { rows.append(["error", error]) }
        if status != 0 { rows.append(["response", "\(status)"]) }
        rows.append(["next", next])
        return TextTable(rows: rows.map { $0.map(Console.printable) }).text
    }
}
