// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignJSON
import CountersignParents
import CountersignRouting

/// The parents, scripts and routes on the page.
struct PageRoutes {
    let finder: RouteFinder
    /// `scheme://host:port`.
    let sites: [String]

    /// The most sites whose routes are shown.
    private static let limit = 200

    var json: JSONObject {
        let report = finder.report
        var object = JSONObject()
        object.add("parents", report.parents.map(Self.parent))
        object.add("scripts", report.scripts.map(Self.script))
        object.add("sites", sites.prefix(Self.limit).compactMap(route))
        return object
    }

    private static func parent(_ parent: RouteReport.Parent) -> JSONObject {
        var object = JSONObject()
        object.add("parent", parent.parent.description)
        if let rest = parent.lastFor { object.add("lastForSeconds", UInt64(max(1, rest.components.seconds))) }
        return object
    }

    private static func script(_ script: RouteReport.Script) -> JSONObject {
        var object = JSONObject()
        object.add("script", script.source.description)
        object.add("fault", ifAny: script.fault)
        return object
    }

    /// Nil for a site about which a script has to be asked again.
    private func route(to site: String) -> JSONObject? {
        guard let origin = try? AbsoluteURL(parsing: site).origin,
            let hops = finder.knownRoute(to: origin, path: "/")
        else { return nil }
        var object = JSONObject()
        object.add("site", site)
        object.add("hops", hops.map { "\($0.hop) (\($0.reason))" })
        return object
    }
}
