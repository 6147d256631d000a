// SPDX-License-Identifier: Apache-2.0

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
    /// The site is loaded into a frame.
    case frame
    /// A page of another origin loads something from the site.
    case foreign

    /// The values are those of Sec-Fetch-Site, Sec-Fetch-Mode, Sec-Fetch-Dest and Origin; nil for a field that is not
    /// there. `isSafe`: the method is GET or HEAD. `ownOrigin` is the site's, as Origin writes it.
    package init(
        site: String?, mode: String?, destination: String?, origin: String?, isSafe: Bool, ownOrigin: String
    ) {
        let frames = ["iframe", "frame", "embed", "object", "fencedframe"]
        if let destination, frames.contains(destination) {
            self = mode == "navigate" ? .frame : .foreign
            return
        }
        switch site {
        case nil:
            // An old browser, if there is an Origin.
            self = origin == nil || origin == ownOrigin ? .direct : .foreign
        case "none"?, "same-origin"?: self = .direct
        case let other?:
            guard mode == "navigate" else {
                self = .foreign
                return
            }
            self = .navigation(isSameSite: other == "same-site", isSafe: isSafe)
        }
    }

    /// Whether the response may change the session, and the request may get cookies at all.
    package var usesSession: Bool { self != .foreign }

    /// Whether the request gets a cookie with this attribute (RFC 6265bis §5.8.3).
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
        case .frame: sameSite == .none
        case .foreign: false
        }
    }
}

extension SharedSession {
    /// The cookies for a request to the session's host over TLS, in the order in which they are sent: those with longer
    /// paths first (RFC 6265 §5.4). `path` may have a query. `sent` has the values of the client's own Cookie fields:
    /// none of the names in it is added. `now` is in seconds since 1970.
    package func cookies(
        path: some Collection<UInt8>, cause: RequestCause, sent: [ArraySlice<UInt8>], now: Int64
    ) -> [Cookie] {
        guard cause.usesSession else { return [] }
        let path = path.prefix { $0 != UInt8(ascii: "?") }
        let own = sent.flatMap(Self.names)
        return cookies.filter { cookie in
            cookie.end > now && cause.permits(cookie.sameSite) && cookie.covers(path: path)
                && !own.contains { $0.elementsEqual(cookie.name.utf8) }
        }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// The names in the value of a Cookie field.
    private static func names(in field: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        field.split(separator: UInt8(ascii: ";")).map { pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }.drop { $0 == 0x20 || $0 == 0x09 }
            let end = name.lastIndex { $0 != 0x20 && $0 != 0x09 }.map { $0 + 1 } ?? name.startIndex
            return name[..<end]
        }
    }
}
