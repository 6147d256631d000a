// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Synchronization

/// What listed sites have offered, and what was answered, since the start: which of them take NTLM only, which would
/// take Kerberos, and which still take Basic.
package final class SiteInventory: Sendable {
    /// One origin.
    fileprivate struct Site {
        var rule: String
        /// In the order in which they were seen.
        var offered: [String] = []
        var answered: String?
        var requests: UInt64 = 0
        var refused: UInt64 = 0
        var status = 0
        var milliseconds: UInt64 = 0
        var time: Int64 = 0
    }

    private let sites = Mutex<[String: Site]>([:])

    /// The most origins; later ones are left out.
    private static let limit = 1000

    package init() {}

    /// A request to a listed site has ended. Does nothing without a line of the list. `now` is in seconds since 1970.
    package func note(
        _ site: RequestSite, offered: [String], answered: String?, isRefused: Bool, status: Int, milliseconds: UInt64,
        now: Int64
    ) {
        guard let rule = site.rule else { return }
        sites.withLock { sites in
            guard sites[site.name] != nil || sites.count < Self.limit else { return }
            sites[site.name, default: Site(rule: rule)]
                .note(rule, offered, answered, isRefused, status, milliseconds, now)
        }
    }

    /// The origins that occur in ``json``, by name.
    package var names: [String] { sites.withLock { $0.keys.sorted() } }

    /// One object for each origin, by name.
    package var json: [JSONObject] {
        let sites = sites.withLock { $0 }
        return sites.sorted { $0.key < $1.key }.map { name, site in
            var object = JSONObject()
            object.add("site", name)
            object.add("rule", site.rule)
            object.add("offered", site.offered)
            object.add("answered", ifAny: site.answered)
            object.add("requests", site.requests)
            object.add("refused", site.refused)
            object.add("lastStatus", UInt64(max(0, site.status)))
            object.add("lastMs", site.milliseconds)
            object.add("lastTime", WallClock.rfc3339(site.time))
            return object
        }
    }
}

extension SiteInventory.Site {
    private static let schemeLimit = 16

    fileprivate mutating func note(
        _ rule: String, _ schemes: [String], _ scheme: String?, _ isRefused: Bool, _ status: Int,
        _ milliseconds: UInt64, _ now: Int64
    ) {
        self.rule = rule
        for scheme in schemes where offered.count < Self.schemeLimit && !offered.contains(scheme) {
            offered.append(scheme)
        }
        if let scheme { answered = scheme }
        requests += 1
        if isRefused { refused += 1 }
        (self.status, self.milliseconds, time) = (status, milliseconds, now)
    }
}
