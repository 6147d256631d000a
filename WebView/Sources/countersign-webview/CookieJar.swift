// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import WebViewProtocol

/// WebKit's cookies, HttpOnly and session cookies included.
struct CookieJar {
    let manager: OpaquePointer?

    /// Stores `cookies`, one after the other, then calls `done` with whether all are stored.
    func add(_ cookies: some Collection<Cookie>, done: @escaping (Bool) -> Void) {
        guard let cookie = cookies.first else { return done(true) }
        let rest = Array(cookies.dropFirst())
        let soup = cookie.soupCookie
        webkit_cookie_manager_add_cookie(
            manager, soup, nil,
            { manager, result, data in
                let isAdded = webkit_cookie_manager_add_cookie_finish(OpaquePointer(manager), result, nil)
                Callback<Bool>.take(data)(isAdded != 0)
            },
            Callback<Bool> { isAdded in
                if isAdded { add(rest, done: done) } else { done(false) }
            }.retained())
        soup_cookie_free(soup)
    }

    /// Calls `done` with every cookie of the session.
    func all(done: @escaping ([Cookie]) -> Void) {
        webkit_cookie_manager_get_all_cookies(
            manager, nil,
            { manager, result, data in
                let list = webkit_cookie_manager_get_all_cookies_finish(OpaquePointer(manager), result, nil)
                var cookies: [Cookie] = []
                var node = list
                while let current = node {
                    cookies.append(Cookie(OpaquePointer(current.pointee.data)))
                    soup_cookie_free(OpaquePointer(current.pointee.data))
                    node = current.pointee.next
                }
                g_list_free(list)
                Callback<[Cookie]>.take(data)(cookies)
            }, Callback(done).retained())
    }
}

extension Cookie {
    fileprivate init(_ soup: OpaquePointer?) {
        func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
        let sameSite: SameSite =
            switch soup_cookie_get_same_site_policy(soup) {
            case SOUP_SAME_SITE_POLICY_STRICT: .strict
            case SOUP_SAME_SITE_POLICY_LAX: .lax
            default: .none
            }
        self.init(
            name: text(soup_cookie_get_name(soup)), value: text(soup_cookie_get_value(soup)),
            domain: text(soup_cookie_get_domain(soup)), path: text(soup_cookie_get_path(soup)),
            expires: soup_cookie_get_expires(soup).map { Int64(g_date_time_to_unix($0)) },
            secure: soup_cookie_get_secure(soup) != 0, httpOnly: soup_cookie_get_http_only(soup) != 0,
            sameSite: sameSite)
    }

    /// Owned by the caller.
    fileprivate var soupCookie: OpaquePointer? {
        let soup = soup_cookie_new(name, value, domain, path, -1)
        if let expires {
            let date = g_date_time_new_from_unix_utc(gint64(expires))
            soup_cookie_set_expires(soup, date)
            g_date_time_unref(date)
        }
        soup_cookie_set_secure(soup, secure ? 1 : 0)
        soup_cookie_set_http_only(soup, httpOnly ? 1 : 0)
        let policy =
            switch sameSite {
            case .none: SOUP_SAME_SITE_POLICY_NONE
            case .lax: SOUP_SAME_SITE_POLICY_LAX
            case .strict: SOUP_SAME_SITE_POLICY_STRICT
            }
        soup_cookie_set_same_site_policy(soup, policy)
        return soup
    }
}
