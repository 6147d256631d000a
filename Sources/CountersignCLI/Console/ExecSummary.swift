// SPDX-License-Identifier: Apache-2.0

import Countersign

/// What `countersign exec` says when its command has ended: one line for each site whose challenge was not answered.
struct ExecSummary {
    let sites: UnansweredSites
    let home: Home
    let isListEmpty: Bool

    /// The most sites that are named.
    private static let limit = 10

    func write(status: Int32) {
        if isListEmpty { SiteReports.noneListed(in: home) }
        let unanswered = sites.sites(hasFailed: status != 0)
        for site in unanswered.prefix(Self.limit) { Console.warning(site.sentence) }
        if unanswered.count > Self.limit {
            Console.warning("\(unanswered.count - Self.limit) more sites were not answered")
        }
    }
}
