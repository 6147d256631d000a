// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The cookies from those responses of one exchange that its client has not seen, because their challenges were
/// answered for it. A client that answers itself would send them with its answer, and would keep them.
///
/// They do not outlive the exchange, whose requests all go to one origin and one path.
package struct HiddenCookies {
    private struct Line {
        let identity: Cookie.Identity
        let field: ArraySlice<UInt8>
    }

    /// The most that is kept of the responses of one exchange.
    static let maximumBytes = 32 << 10

    private var lines: [Line] = []
    private var changes: [SharedSession.Change] = []
    private var byteCount = 0

    package init() {}

    /// Takes the values of a response's Set-Cookie fields. `path` is the request's, which may have a query. `isSecure`:
    /// the request went over TLS. `cause` is why the client has sent the request.
    package mutating func received(
        _ fields: [ArraySlice<UInt8>], _ reader: SetCookieReader, path: some Collection<UInt8>, isSecure: Bool,
        cause: CookieCause
    ) {
        let path = path.prefix { $0 != UInt8(ascii: "?") }
        for field in fields {
            byteCount += field.count
            guard byteCount <= Self.maximumBytes else { return }
            let identity = SetCookieReader.identity(field, requestPath: path)
            lines.removeAll { $0.identity == identity }
            lines.append(Line(identity: identity, field: field))
            guard let received = reader.change(field, requestPath: path), cause.permits(received.sameSite) else {
                continue
            }
            if case .set(let cookie) = received.change, cookie.isSecure, !isSecure { continue }
            guard received.change.identity.covers(path: path) else { continue }
            changes.removeAll { $0.identity == received.change.identity }
            changes.append(received.change)
        }
    }

    // MARK: The answer

    /// The request's cookies change.
    package var changesRequest: Bool { !changes.isEmpty }

    /// The cookies that the request gets, in the order in which they are sent (RFC 6265 §5.4).
    package var cookies: [Cookie] {
        changes.compactMap { if case .set(let cookie) = $0 { cookie } else { nil } }
            .sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Whether a cookie of this name has been replaced or removed.
    package func replaces(_ name: String) -> Bool { changes.contains { $0.identity.name == name } }

    /// The pairs that remain of the client's own cookies. `fields` are the values of the request's Cookie fields.
    package func remaining(of fields: [ArraySlice<UInt8>]) -> [ArraySlice<UInt8>] {
        fields.flatMap { $0.split(separator: UInt8(ascii: ";")) }.map(SetCookieReader.trimmed).filter { pair in
            let name = SetCookieReader.trimmed(pair.prefix { $0 != UInt8(ascii: "=") })
            return !changes.contains { $0.identity.name.utf8.elementsEqual(name) }
        }
    }

    // MARK: The client

    /// The values of Set-Cookie that the client gets with the final response, oldest first. `own` are the response's
    /// own values; the values that they replace are left out.
    package func lines(besides own: [ArraySlice<UInt8>], path: some Collection<UInt8>) -> [ArraySlice<UInt8>] {
        let path = path.prefix { $0 != UInt8(ascii: "?") }
        let replaced = Set(own.map { SetCookieReader.identity($0, requestPath: path) })
        return lines.filter { !replaced.contains($0.identity) }.map(\.field)
    }
}
