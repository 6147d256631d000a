// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignChallenges
import CountersignHome

/// The report of `countersign exec` when its command has ended: one line for each site whose challenge was not
/// answered.
struct ExecSummary {
    let report: UnansweredReport
    let home: Home

    /// The most sites that are named.
    private static let limit = 10

    func write(status: Int32) {
        if home.isPaused {
            Console.warning(Refusal.paused.text)
        } else if report.isListEmpty {
            SiteReports.noneListed(in: home)
            SiteReports.write(home.ignoredSiteFiles)
        }
        if report.hasUntrusted == true { SiteReports.write(home.ignoredAnchorFiles) }
        let unanswered = status == 0 ? report.afterSuccess : report.afterFailure
        for sentence in unanswered.prefix(Self.limit) { Console.warning(sentence) }
        if unanswered.count > Self.limit {
            Console.warning("\(unanswered.count - Self.limit) more sites were not answered")
        }
    }
}
