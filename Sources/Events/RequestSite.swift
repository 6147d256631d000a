// SPDX-License-Identifier: Apache-2.0

/// A site and its line in the list, as requests are reported with them. Made once for all requests of a route.
package final class RequestSite: Equatable, Sendable {
    /// `scheme://host:port`, or `host:port` of a tunnel with unknown content.
    package let name: String
    /// The list's `file:line`.
    package let rule: String?

    package init(_ name: String, rule: String? = nil) {
        self.name = name
        self.rule = rule
    }

    package static func == (left: RequestSite, right: RequestSite) -> Bool {
        left === right || left.name == right.name && left.rule == right.rule
    }
}
