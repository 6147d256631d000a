// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCookies
import CountersignHTTP1

/// Cookies of responses that the client does not get, because the proxy answers them.
extension ExchangeDriver {
    /// The response makes way for another one. A parent that challenges does not speak for the origin.
    func noteHiddenCookies(of response: borrowing ResponseHead) {
        guard response.fields.contains(.setCookie), response.status != ChallengeSource.parentProxy.status else {
            return
        }
        let fields = response.fields
        if let use = route.sharedSession { noteSessionCookies(fields, use) }
        let reader = SetCookieReader(
            host: origin.host, names: nil, now: services.shared.wallClock(),
            isPublicSuffix: services.shared.sessions.isPublicSuffix)
        let dialogue = beginDialogue()
        var hidden = dialogue.hiddenCookies ?? HiddenCookies()
        hidden.received(
            Self.setCookies(of: fields), reader, path: path, isSecure: origin.scheme == .https, cause: causeOfCookies)
        dialogue.hiddenCookies = hidden
    }

    /// A request whose challenge is answered may have the cookies of that challenge. If its browser says that another
    /// site has caused it, `SameSite` counts.
    private var causeOfCookies: CookieCause {
        guard let foreignCause else { return .sameSite }
        return foreignCause.cause.cookies(foreignCause.verdict) ?? .crossSite(isSafeNavigation: false)
    }

    private static func setCookies(of fields: FieldLines) -> [ArraySlice<UInt8>] {
        fields.lines.filter { $0.known == .setCookie }.map { fields.valueBytes(of: $0) }
    }

    /// The cookies of the next request: the client's, those of a shared session, and those of the hidden responses,
    /// which replace others of their name.
    func cookieField(with hidden: HiddenCookies) -> CookieField {
        let shared = route.sharedSession.map { sharedCookies($0) } ?? []
        return CookieField(
            own: hidden.remaining(of: sentCookies),
            shared.filter { !hidden.replaces($0.name) } + hidden.cookies)
    }

    /// The Set-Cookie lines of the hidden responses, for a client that gets `response`.
    func hiddenSetCookies(besides response: borrowing ResponseHead) -> [ArraySlice<UInt8>] {
        guard let hidden = dialogue?.hiddenCookies else { return [] }
        return hidden.lines(besides: Self.setCookies(of: response.fields), path: path)
    }
}
