// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignSitePolicy

/// The listed sites at which a client identity may be shown.
struct IdentitySites {
    private let rules: [SiteRule]

    /// Those of the list in force; none, and a warning, where it is faulty.
    init(of home: Home) {
        do {
            rules = try home.sites().rules.filter { rule in
                rule.pattern.scheme == .https && rule.intercepts && rule.answer.contains(.certificate)
            }
        } catch {
            Console.warning("the allowed-sites list cannot be read: sites are left out", hint: "countersign sites list")
            rules = []
        }
    }

    /// The sites that are to see this identity and no other.
    func named(_ name: String) -> [String] { rules.filter { $0.identity == name }.map(\.pattern.description) }

    /// The sites that see whichever identity their server accepts.
    var byIssuer: [String] { rules.filter { $0.identity == nil }.map(\.pattern.description) }
}
