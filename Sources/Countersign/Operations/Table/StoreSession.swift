// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCookies
package import CountersignCryptography
import CountersignHome
import CountersignSitePolicy
import CountersignVault

/// Adds cookies to a shared session or, if it replaces them, puts them in the place of all that the session has. The
/// secret is ``SessionValues``.
package struct StoreSession: VaultOperation {
    package static let name = "storeSession"
    private let session: ListedSession
    private let replaces: Bool

    package init(_ session: ListedSession, replaces: Bool) {
        self.session = session
        self.replaces = replaces
    }

    package func change(_ result: Done) -> String? {
        "stored the session of group \(session.group.debugDescription) at \(session.host.debugDescription)"
    }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Done {
        let values = try VaultOperations.needed(secret)
        guard let cookies = SessionValues.decode(values, of: session.cookies) else {
            throw CountersignError(.refused, "the session's cookies are malformed")
        }
        guard (try? HostName(canonicalizing: session.host))?.text == session.host,
            SiteRule.isStoredName(session.group)
        else {
            throw CountersignError(
                .configuration, "\(session.group.debugDescription) and \(session.host.debugDescription) name no session"
            )
        }
        for cookie in cookies {
            if let fault = cookie.fault(for: session.host) {
                throw CountersignError(.refused, "the cookie \(cookie.name.debugDescription) has \(fault)")
            }
        }
        let time = vault.now()
        try vault.opened().update { contents in
            var changes = cookies.map { SharedSession.Change.set($0) }
            if let former = contents.sessions[session.key] {
                let kept = Set(cookies.map(\.identity))
                let removed = replaces ? former.cookies.map(\.identity) : former.expired(at: time)
                changes = removed.filter { !kept.contains($0) }.map { SharedSession.Change.remove($0) } + changes
            }
            guard try contents.changeSession(session.key, changes) == changes.count else {
                throw CountersignError(
                    .refused, "the session of \(session.host) has no room for its cookies",
                    hint: "a session has at most \(SharedSession.maximumCookies) cookies, and "
                        + "\(SharedSession.maximumBytes) bytes")
            }
        }
        return Done()
    }
}
