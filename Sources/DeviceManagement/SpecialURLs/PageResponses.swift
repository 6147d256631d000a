// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// A response to a request for the view's own page, also one that redirects.
package struct PageResponse: Equatable, Sendable {
    package let origin: Origin
    package let status: Int
    package let headers: ResponseHeaders

    package init(origin: Origin, status: Int, headers: ResponseHeaders) {
        self.origin = origin
        self.status = status
        self.headers = headers
    }

    /// The URL to which the response redirects the view, with the scheme in lower case and without a fragment; nil if
    /// it does not redirect.
    fileprivate var target: String? {
        guard redirects, let location = headers["Location"] else { return nil }
        return Self.comparable(location)
    }

    /// Whether the view may show its content.
    fileprivate var isPage: Bool { !redirects && status != 204 && status != 205 }

    private var redirects: Bool { [301, 302, 303, 307, 308].contains(status) }

    /// A view writes the scheme in lower case and encodes the characters that a URL must not contain.
    fileprivate static func comparable(_ url: String) -> String {
        let url = url.prefix { $0 != "#" }
        let scheme = url.prefix { $0 != ":" }
        let rest = PercentEncoding.encode(url.dropFirst(scheme.count).utf8) { (0x21...0x7E).contains($0) }
        return scheme.lowercased() + String(decoding: rest, as: UTF8.self)
    }
}

/// The last responses to a view's pages. One of them has led to a special URL.
package struct PageResponses: Sendable {
    /// The largest number of responses to keep until a special URL appears.
    package static let maximumCount = 32

    private var recent: [PageResponse] = []

    package init() {}

    package mutating func add(_ response: PageResponse) {
        if recent.count == Self.maximumCount { recent.removeFirst() }
        recent.append(response)
    }

    /// The response that has led to `url`: the last one that redirects there, which is then forgotten. Without one, a
    /// page has opened the URL, and this is the last response with a page.
    package mutating func cause(of url: String) -> PageResponse? {
        let url = PageResponse.comparable(url)
        if let index = recent.lastIndex(where: { $0.target == url }) { return recent.remove(at: index) }
        return recent.last(where: \.isPage)
    }
}
