// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// What a script can see of a request. The path of an https URL is left out, as in browsers, because the script is
/// somebody else's program and its host look-ups would carry the path to a DNS server.
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
