// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import CountersignHome
package import CountersignSignIn
import Glibc

extension SharedCookies {
    /// Adds the cookies that the window has reported to their session in the vault.
    package func store(in vault: any OperationPerformer) throws {
        let known = try vault.perform(ListSessions()).first { $0.key == key }?.cookies ?? []
        let captured = captured(at: Int64(time(nil)), isPublicSuffix: Home.isPublicSuffix) { identity in
            known.first { $0.identity == identity }.map { .init(sameSite: $0.sameSite, stored: $0.stored) }
        }
        var session = SharedSession(key: key)
        for cookie in captured { session.apply(.set(cookie)) }
        guard !session.cookies.isEmpty else { return }
        _ = try vault.perform(
            StoreSession(ListedSession(session), replaces: false), secret: SessionValues.encoded(session.cookies))
    }
}
