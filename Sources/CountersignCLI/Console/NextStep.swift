// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignReporting

/// The advice of `countersign test` after a request without a good response.
struct NextStep {
    let url: AbsoluteURL
    let explanation: Explanation
    let response: CurlClient.Response
    /// The hops of the request.
    let route: [RouteHop]

    /// The command that lists the site; nil if that does not help.
    var listing: String? {
        guard case .addSite = explanation.remedies.first else { return nil }
        return Remedy.sentence(explanation.remedies)
    }

    /// `failed` is the site that was not answered.
    func sentence(_ failed: UnansweredSites.Site?, isTunnel: Bool, _ unanswered: UnansweredSites) -> String {
        if let library = response.missingLibrary { return library.hint }
        let obstacle = unanswered.obstacle(to: url.origin)
        // The content of a tunnel is opaque: of a response, only the client knows that it was a 401.
        if let failed, failed.origin.scheme == .proxy || !isTunnel || response.status == 401 {
            return failed.remedy ?? "nothing that countersign can do: \(failed.reason)"
        }
        if response.status == 407, let parent = route.first(where: \.isParent)?.listedLine {
            return Remedy.addSite(parent).sentence
        }
        if response.isCertificateRefused, isTunnel {
            let anchor = Remedy.addTrustAnchor.sentence
            return listing.map { "\(anchor), and \($0)" } ?? anchor
        }
        if let obstacle { return Self.sentence(obstacle, url, listing) }
        if response.failure != nil || [502, 503, 504].contains(response.status) {
            return "the site was not reached: check its name, its port and the network"
        }
        return "look at the response: curl -v \(url)"
    }

    private static func sentence(
        _ obstacle: ChallengeObserver.Obstacle, _ url: AbsoluteURL, _ listing: String?
    ) -> String {
        switch obstacle {
        case .unknownName: "the name was not found: check it, and whether a parent proxy is needed (--parent)"
        case .network: "the site was not reached: check its name, its port and the network"
        case .parent(let place, nil):
            "the parent proxy \(place) gave no answer: check its name and port, with `countersign route \(url)`"
        case .parent(let place, _?): "the parent proxy \(place) refuses: ask its administrator"
        case .noRoute: "nothing leads to the site: `countersign route \(url)` shows why"
        case .closed: "the site closed the connection without a response: try again, or ask its administrator"
        case .tooSlow: "the site did not respond in time: try again, or ask its administrator"
        case .tls: "the site does not complete the TLS handshake: ask its administrator"
        case .thisMachine: listing ?? "the name leads to this machine"
        case .other: "look at the response: curl -v \(url)"
        }
    }
}

extension RouteHop {
    /// The line that lists the parent; nil for another hop.
    fileprivate var listedLine: String? {
        guard isParent, let end = hop.firstRange(of: "://") else { return nil }
        let isPlain = hop[..<end.lowerBound] == "http"
        return "\(Origin.Scheme.proxy.rawValue)://\(hop[end.upperBound...])" + (isPlain ? " plaintext=yes" : "")
    }
}
