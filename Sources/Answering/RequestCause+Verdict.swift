// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCookies

extension RequestCause {
    /// Whether a request may use a credential of the person.
    package enum Verdict: Equatable, Sendable {
        /// The person, a page of the site itself, or a client that is not a browser.
        case own
        /// A page of another origin navigates the browser to the site, with a safe method and at the top level of a
        /// window.
        case navigation(from: PageOrigin?, isSameSite: Bool)
        /// A page of another origin that the site's line or the list of sites permits.
        case permitted(PageOrigin, isSameSite: Bool)
        case refused(Refusal)
    }

    /// Why a request gets no credential.
    package struct Refusal: Equatable, Sendable {
        package enum Cause: Equatable, Sendable {
            case page
            /// The response is loaded in advance.
            case prefetch
            case serviceWorker
            /// The fields contradict each other.
            case contradiction
            /// A browser that does not say for which page it asks.
            case silentBrowser
        }

        package let cause: Cause
        /// Nil if no field names it.
        package let page: PageOrigin?

        /// A short sentence without a full stop, with the option that helps.
        package var text: String {
            let asker = page.map { "a page of \($0) asks" } ?? "a page of another origin asks"
            return switch cause {
            case .page:
                page.map { "\(asker); cross-site=\($0) on the site's line permits it" } ?? "\(asker), without its name"
            case .prefetch: "\(asker) in advance (prefetch)"
            case .serviceWorker: "\(asker) for a service worker"
            case .contradiction: "\(asker), or the request's Origin, Referer and Sec-Fetch fields contradict each other"
            case .silentBrowser: "a browser asks that does not say for which page"
            }
        }

        package var refusal: CountersignChallenges.Refusal { .init(.foreignPage(page?.description), text) }
    }

    /// The verdict for a site whose line permits the pages in `crossSite`. `isListed` says whether a page's origin is
    /// a listed site.
    package func verdict(crossSite: [PageOrigin], isListed: (PageOrigin) -> Bool) -> Verdict {
        func refused(_ cause: Refusal.Cause) -> Verdict { .refused(Refusal(cause: cause, page: page)) }
        guard !isAmbiguous else { return refused(.contradiction) }
        switch site {
        case .none:
            // Chromium also sends `none` for loads by a page's speculation rules, with the page as the referrer.
            if isEarly { return referrer.name == own ? .own : refused(.prefetch) }
            if isFrame { return refused(.contradiction) }
            // An extension of the browser may name itself, and a form that the browser sends again names no page.
            guard let page, page.origin != nil else { return .own }
            return origin == .unnamed && isTopLevelNavigation
                ? .navigation(from: page, isSameSite: false) : refused(.contradiction)
        case .sameOrigin:
            // Without a referrer, the browser writes null for pages of the site itself (Fetch §3.2).
            if let page = origin.name, page != own { return refused(.contradiction) }
            return .own
        case .unknown:
            return verdictWithoutMetadata(crossSite)
        case .sameSite, .crossSite:
            return verdictOnAnotherOrigin(crossSite, isListed)
        }
    }

    private func verdictOnAnotherOrigin(_ crossSite: [PageOrigin], _ isListed: (PageOrigin) -> Bool) -> Verdict {
        func refused(_ cause: Refusal.Cause) -> Verdict { .refused(Refusal(cause: cause, page: page)) }
        if isEarly { return refused(.prefetch) }
        if destination == "serviceworker" { return refused(.serviceWorker) }
        // A page of the site itself, whose request was redirected, has no Origin, or null.
        if origin.name == own { return refused(.contradiction) }
        if let named = origin.name, let other = referrer.name, named != other { return refused(.contradiction) }
        let isSameSite = site == .sameSite
        if let page, crossSite.contains(page) { return .permitted(page, isSameSite: isSameSite) }
        if isSameSite, let page = origin == .unnamed ? referrer.name : origin.name, page.origin?.scheme == .https,
            isListed(page)
        {
            return .permitted(page, isSameSite: true)
        }
        return isTopLevelNavigation ? .navigation(from: page, isSameSite: isSameSite) : refused(.page)
    }

    /// Browsers send no Fetch Metadata over http, and old ones send none at all.
    private func verdictWithoutMetadata(_ crossSite: [PageOrigin]) -> Verdict {
        let page = origin == .unnamed ? referrer : origin
        switch page {
        case .named(own): return .own
        case .named(let other):
            return crossSite.contains(other)
                ? .permitted(other, isSameSite: false) : .refused(Refusal(cause: .page, page: other))
        case .opaque: return .refused(Refusal(cause: .page, page: nil))
        case .unnamed:
            guard isBrowser else { return .own }
            // Over http, a page cannot be distinguished from one in a frame. Without this, a browser could not open the
            // site.
            if own.origin?.scheme == .http, isSafe, upgradesInsecure, !isWebSocket { return .own }
            return .refused(Refusal(cause: .silentBrowser, page: nil))
        }
    }
}

extension RequestCause {
    /// Which cookies of a shared session the request gets.
    package func cookies(_ verdict: Verdict) -> CookieCause? {
        switch verdict {
        case .own, .permitted(_, isSameSite: true), .navigation(from: _, isSameSite: true): .sameSite
        case .navigation(from: _, isSameSite: false): .crossSite(isSafeNavigation: true)
        case .permitted(_, isSameSite: false): .crossSite(isSafeNavigation: isTopLevelNavigation)
        case .refused: nil
        }
    }

    /// Whether the identity broker may sign the person in: the request loads a page or a frame with a safe method, and
    /// is not caused by a page of another origin that embeds it in a frame. Scripts cannot forge that for another
    /// request, because they cannot set these fields. A browser that does not send them gets nothing.
    package func permitsBroker(_ verdict: Verdict, _ crossSite: [PageOrigin]) -> Bool {
        guard mode == "navigate", isSafe, !isEarly, !isWebSocket else { return false }
        switch verdict {
        case .refused: return false
        case .own, .navigation: return destination == "document" || destination == "iframe"
        case .permitted(let page, _):
            return destination == "document" || destination == "iframe" && crossSite.contains(page)
        }
    }
}
