// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The cause of a request, by its fields (Fetch Metadata Request Headers, W3C).
///
/// A credential is ambient authority: the person has it, not the page that a browser shows. So a page of another
/// origin gets only the access that the browser alone would give it. The proxy cannot see the page, nor whether a
/// request of a page is one without credentials, so it is stricter than a browser: of the requests that pages of other
/// origins cause, only navigations get a credential, unless the site's line or the list of sites names the page.
package struct RequestCause: Equatable, Sendable {
    /// The fields that show the cause. The raw values are their names in lower case.
    package enum Field: String, CaseIterable, Sendable {
        case site = "sec-fetch-site"
        case mode = "sec-fetch-mode"
        case destination = "sec-fetch-dest"
        case purpose = "sec-purpose"
        case formerPurpose = "purpose"
        case origin
        case referrer = "referer"
        case userAgent = "user-agent"
        case upgradesInsecure = "upgrade-insecure-requests"
    }

    /// The browser's classification of the page's relation to the site.
    package enum Site: Equatable, Sendable {
        /// No Fetch Metadata: no browser, an old one, or a site over http.
        case unknown
        /// The person, and no page.
        case none
        case sameOrigin
        case sameSite
        /// Also a word that is not known yet.
        case crossSite
    }

    /// The page that a field names.
    enum Page: Equatable {
        case unnamed
        /// `null`, or a text that is not an origin.
        case opaque
        case named(PageOrigin)

        var name: PageOrigin? { if case .named(let page) = self { page } else { nil } }
    }

    package let site: Site
    let own: PageOrigin
    /// From `Origin`.
    let origin: Page
    /// From `Referer`.
    let referrer: Page
    let mode: String?
    let destination: String?
    /// The response is loaded before the person asks for it, as speculation rules do for links of any page.
    package let isEarly: Bool
    /// The method is GET or HEAD.
    let isSafe: Bool
    let isWebSocket: Bool
    /// `User-Agent` is that of a browser.
    let isBrowser: Bool
    let upgradesInsecure: Bool
    /// A field occurs several times, or has several values.
    let isAmbiguous: Bool

    /// `own` is the target's origin. `values` returns the values of each line of a field. `isSafe`: the method is GET
    /// or HEAD. `isWebSocket`: the request wants to become a WebSocket (RFC 6455 §4.1).
    package init(to own: Origin, isSafe: Bool, isWebSocket: Bool = false, values: (Field) -> [String]) {
        self.own = PageOrigin(own)
        self.isSafe = isSafe
        self.isWebSocket = isWebSocket
        var isAmbiguous = false
        func value(_ field: Field) -> String? {
            let all = values(field)
            if all.count > 1 || all.first?.utf8.contains(UInt8(ascii: ",")) == true { isAmbiguous = true }
            return all.first
        }
        site =
            switch value(.site) {
            case nil: .unknown
            case "none"?: .none
            case "same-origin"?: .sameOrigin
            case "same-site"?: .sameSite
            default: .crossSite
            }
        mode = value(.mode)
        destination = value(.destination)
        let named = value(.origin)
        origin = Self.page(named, PageOrigin.init(parsing:))
        if origin == .opaque, named != "null" { isAmbiguous = true }
        let referrers = values(.referrer)
        if referrers.count > 1 { isAmbiguous = true }
        referrer = Self.page(referrers.first, PageOrigin.init(ofURL:))
        isEarly =
            !values(.purpose).isEmpty
            || values(.formerPurpose).contains { $0.lowercased().contains("prefetch") }
        // PowerShell is not a browser, but claims to be one (Invoke-WebRequest).
        isBrowser = values(.userAgent).contains { $0.hasPrefix("Mozilla/") && !$0.contains("PowerShell/") }
        upgradesInsecure = values(.upgradesInsecure) == ["1"]
        self.isAmbiguous = isAmbiguous
    }

    private static func page(_ text: String?, _ parse: (String) throws(HostNameError) -> PageOrigin) -> Page {
        guard let text else { return .unnamed }
        return (try? parse(text)).map(Page.named) ?? .opaque
    }

    /// The page behind the request, if a field names one of another origin.
    package var page: PageOrigin? {
        let page = origin == .unnamed ? referrer.name : origin.name
        return page == own ? nil : page
    }

    /// The person has opened the target at the top level of a window, or a page has done so.
    var isTopLevelNavigation: Bool {
        mode == "navigate" && destination == "document" && isSafe && !isWebSocket
    }

    var isFrame: Bool {
        destination.map { ["iframe", "frame", "embed", "object", "fencedframe"].contains($0) } ?? false
    }
}
