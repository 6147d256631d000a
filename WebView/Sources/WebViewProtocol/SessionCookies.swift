// SPDX-License-Identifier: Apache-2.0

/// The cookies of a session that pass between windows.
package enum SessionCookies {
    /// - Throws: `ProtocolError` unless each of `cookies` could have been set by one of the hosts.
    package static func check(_ cookies: [Cookie], for hosts: [String]) throws(ProtocolError) {
        guard cookies.count <= Limits.cookies else { throw ProtocolError("'cookies' has too many members") }
        for cookie in cookies {
            try cookie.checkSyntax()
            guard hosts.contains(where: cookie.isSent) else { throw ProtocolError("a cookie is for another host") }
        }
    }

    /// Those of `cookies` that one of the hosts gets, in a stable order, up to the limits of another window, and the
    /// number of omitted ones.
    package static func select(_ cookies: [Cookie], for hosts: [String]) -> (selected: [Cookie], omitted: Int) {
        let own = cookies.filter { hosts.contains(where: $0.isSent) }
            .sorted { ($0.name, $0.domain, $0.path) < ($1.name, $1.domain, $1.path) }
        var selected: [Cookie] = []
        var bytes = 0
        for cookie in own where selected.count < Limits.cookies {
            guard (try? cookie.checkSyntax()) != nil, bytes + cookie.byteCount <= Limits.sessionBytes else { continue }
            bytes += cookie.byteCount
            selected.append(cookie)
        }
        return (selected, own.count - selected.count)
    }
}
