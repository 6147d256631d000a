// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignSitePolicy

/// The result of `sites check`: whether a site is listed, or whether challenges of a request may be answered.
struct CheckedSite: Encodable {
    let site: String
    let method: String?
    /// Path and query.
    let target: String?
    /// Of the site, or for the request.
    let isListed: Bool
    /// Whether the request is not even forwarded.
    let isRefused: Bool
    /// The line that applies.
    let line: String?
    /// Why no line applies.
    let reason: String?
    /// The number of the site's lines; 0 if the question was about a request or a client.
    private let lineCount: Int

    private enum CodingKeys: String, CodingKey {
        case site, method, target, line, reason
        case isListed = "listed"
        case isRefused = "refused"
    }

    init(_ url: AbsoluteURL, method: String?, in sites: SiteList, for client: SiteList.Client) {
        let verdict =
            method.map {
                sites.verdict(
                    for: url.origin, request: SiteRequest(method: $0, target: ArraySlice(url.path.utf8)),
                    client: client)
            } ?? sites.verdict(for: url.origin, client: client)
        site = url.origin.description
        self.method = method
        target = method == nil ? nil : url.path
        var rule: SiteRule?
        switch verdict {
        case .answer(let found):
            rule = found
            (reason, isRefused) = (nil, false)
        case .tunnel(let refusal):
            (reason, isRefused) = (refusal.text, false)
        case .refuse(let refusal):
            (reason, isRefused) = (refusal.text, true)
        }
        // A line with intercept=no lists a site, too.
        if method == nil, rule == nil, case .unknown = client { rule = sites.rule(for: url.origin) }
        lineCount = if method == nil, case .unknown = client { sites.rules(for: url.origin).count } else { 0 }
        line = rule?.location
        isListed = rule != nil
    }

    /// One line, with its line break.
    var text: String {
        let subject = method.map { "\($0) \(site)\(target ?? "")" } ?? site
        let others = lineCount > 1 ? ", one of its \(lineCount) lines" : ""
        let finding = line.map { method == nil ? "listed at \($0)\(others)" : "answered by \($0)" }
        return "\(subject): \(finding ?? reason ?? "")\n"
    }
}
