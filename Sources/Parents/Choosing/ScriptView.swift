// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// A script's view of a request. The path of an https URL is left out, as in browsers, because the script is a third
/// party's program and its host look-ups could carry the path to a DNS server.
package struct ScriptView: Hashable, Sendable {
    /// The first argument of `FindProxyForURL`.
    package let url: String
    /// The second argument: the host without port and brackets.
    package let host: String

    /// `path` is the request's path and query; a fragment must not be part of it.
    package init(_ origin: Origin, path: String) {
        let path = origin.scheme == .http ? path : "/"
        url = "\(origin.scheme.rawValue)://\(origin.authority)\(path.hasPrefix("/") ? path : "/" + path)"
        host = origin.host
    }
}
