// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// What makes a client send a request, as far as its fields tell (Fetch Metadata Request Headers, W3C).
///
/// The proxy cannot see which page a browser shows, so it is stricter than a browser: of the requests that pages of
/// other origins cause, only navigations get cookies. A browser's request without credentials, whose response the page
/// may read, looks like one with credentials here.
package enum RequestCause: Equatable, Sendable {
    /// The person, a page of the same origin, or a client that is no browser.
    case direct
    /// A page leads the browser to the site.
    case navigation(isSameSite: Bool, isSafe: Bool)
    /// A page of another origin loads something from the site, or loads it into a frame or in advance.
    case foreign

    /// `isSafe`: the method is GET or HEAD. `ownOrigin` is the site's, as Origin writes it. `field` returns the value
    /// of the request's field with a name in lower case; nil if there is none.
    package init(isSafe: Bool, ownOrigin: String, field: (String) -> String?) {
        switch field("sec-fetch-site") {
        case "same-origin"?: self = .direct
        case nil: self = Self.isDirectWithoutMetadata(ownOrigin, field) ? .direct : .foreign
        case let site?:
            let frames = ["iframe", "frame", "embed", "object", "fencedframe"]
            if let destination = field("sec-fetch-dest"), frames.contains(destination) {
                self = .foreign
            } else if site == "none" {
                self = .direct
            } else if field("sec-fetch-mode") == "navigate", !Self.isPrefetch(field) {
                self = .navigation(isSameSite: site == "same-site", isSafe: isSafe)
            } else {
                self = .foreign
            }
        }
    }

    /// Whether no page of another origin is behind a request without Sec-Fetch-Site. A browser that does not send it
    /// does not say that for every request, so none of its requests counts.
    private static func isDirectWithoutMetadata(_ ownOrigin: String, _ field: (String) -> String?) -> Bool {
        if let agent = field("user-agent"), agent.hasPrefix("Mozilla/") { return false }
        if let origin = field("origin"), origin != ownOrigin { return false }
        guard let referrer = field("referer") else { return true }
        return referrer == ownOrigin || referrer.hasPrefix(ownOrigin + "/")
    }

    /// Whether the response is loaded before the person asks for it, as speculation rules do for links of any page.
    private static func isPrefetch(_ field: (String) -> String?) -> Bool {
        ["sec-purpose", "purpose"].contains { field($0)?.lowercased().contains("prefetch") == true }
    }

    /// Whether the response may change the session, and the request may get cookies at all.
    package var usesSession: Bool { self != .foreign }

    /// Whether the request gets a cookie with this attribute (RFC 6265bis §5.8.3), and its response may change one.
    package func permits(_ sameSite: Cookie.SameSite) -> Bool {
        switch self {
        case .direct: true
        case .navigation(isSameSite: true, isSafe: _): true
        case .navigation(isSameSite: false, let isSafe):
            switch sameSite {
            case .none: true
            case .lax, .unspecified: isSafe
            case .strict: false
            }
        case .foreign: false
        }
    }
}

/// The values of the cookies that a client has sent of its own.
package struct SentCookies: Sendable {
    private let pairs: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)]

    /// `fields` are the values of the request's Cookie fields.
    package init(_ fields: [ArraySlice<UInt8>] = []) {
        pairs = fields.flatMap { $0.split(separator: UInt8(ascii: ";")) }.map { pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            return (SetCookieReader.trimmed(name), SetCookieReader.trimmed(pair[name.endIndex...].dropFirst()))
        }
    }

    package func contains(_ name: String) -> Bool { pairs.contains { $0.name.elementsEqual(name.utf8) } }

    package func values(of name: String) -> [Secret] {
        pairs.filter { $0.name.elementsEqual(name.utf8) }.map { Secret($0.value) }
    }
}

extension SharedSession {
    /// The cookies for a request to the session's host over TLS, in the order in which they are sent: those with longer
    /// paths first (RFC 6265 §5.4). `path` may have a query. None of the names in `sent` is added. `now` is in seconds
    /// since 1970.
    package func cookies(
        path: some Collection<UInt8>, cause: RequestCause, sent: SentCookies, now: Int64
    ) -> [Cookie] {
        guard cause.usesSession else { return [] }
        let path = path.prefix { $0 != UInt8(ascii: "?") }
        return cookies.filter { cookie in
            cookie.end > now && cause.permits(cookie.sameSite) && cookie.covers(path: path)
                && !sent.contains(cookie.name)
        }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Whether a response to a request of this cause, which had the cookies in `sent`, may make the change. The request
    /// must be one that gets the cookie, the old one and the new one. If the client has its own session, with another
    /// value, then the response to it neither ends the shared one nor puts the client's in its place.
    package func permits(_ received: ReceivedChange, cause: RequestCause, sent: SentCookies) -> Bool {
        let identity = received.change.identity
        let known = cookies.first { $0.identity == identity }
        guard cause.permits(received.sameSite), known.map({ cause.permits($0.sameSite) }) ?? true else { return false }
        let own = sent.values(of: identity.name)
        let shared = cookies.filter { $0.name == identity.name }.map(\.value)
        guard !own.isEmpty, !shared.isEmpty, !own.allSatisfy(shared.contains) else { return true }
        switch received.change {
        case .remove: return false
        case .set(let cookie): return !own.contains(cookie.value)
        }
    }
}
