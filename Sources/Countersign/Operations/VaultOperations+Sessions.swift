// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
package import CountersignCookies
import CountersignCryptography
import CountersignSignIn
import CountersignSitePolicy
import CountersignVault

extension VaultOperations {
    /// Sorted by group and host. Cookies that have expired are left out.
    func sessions() -> [ListedSession] {
        (vault?.contents.sessions ?? [:]).sorted { $0.key < $1.key }.compactMap { _, session in
            let current = current(session)
            return current.cookies.isEmpty ? nil : ListedSession(current)
        }
    }

    /// The cookies of a session, for an agent that this process runs; nil if there are none. Not available as a
    /// ``VaultOperation``, because none brings a secret out of the vault: an agent behind the running server's proxy
    /// gets the cookies from that.
    package func session(_ key: SharedSession.Key) -> SharedSession? {
        guard let found = vault?.contents.sessions[key] else { return nil }
        let current = current(found)
        return current.cookies.isEmpty ? nil : current
    }

    private func current(_ session: SharedSession) -> SharedSession {
        var session = session
        for identity in session.expired(at: now()) { session.apply(.remove(identity)) }
        return session
    }

    /// Adds the cookies to the session or, with `replaces`, puts them in the place of all that it has.
    func storeSession(_ new: ListedSession, _ values: Secret, replaces: Bool) throws -> VaultResult {
        guard let cookies = SessionValues.decode(values, of: new.cookies) else {
            throw CountersignError(.refused, "the session's cookies are malformed")
        }
        guard (try? HostName(canonicalizing: new.host))?.text == new.host, SiteRule.isStoredName(new.group) else {
            throw CountersignError(
                .configuration, "\(new.group.debugDescription) and \(new.host.debugDescription) name no session")
        }
        for cookie in cookies {
            if let fault = cookie.fault(for: new.host) {
                throw CountersignError(.refused, "the cookie \(cookie.name.debugDescription) has \(fault)")
            }
        }
        let time = now()
        try opened().update { contents in
            var changes = cookies.map { SharedSession.Change.set($0) }
            if let former = contents.sessions[new.key] {
                let kept = Set(cookies.map(\.identity))
                let removed = replaces ? former.cookies.map(\.identity) : former.expired(at: time)
                changes = removed.filter { !kept.contains($0) }.map { SharedSession.Change.remove($0) } + changes
            }
            guard try contents.changeSession(new.key, changes) == changes.count else {
                throw CountersignError(
                    .refused, "the session of \(new.host) has no room for its cookies",
                    hint: "a session has at most \(SharedSession.maximumCookies) cookies, and "
                        + "\(SharedSession.maximumBytes) bytes")
            }
        }
        return .done
    }

    func clearSessions(group: String?, host: String?) throws -> VaultResult {
        let count = try vault?.update { $0.removeSessions(group: group, host: host) } ?? 0
        let known = count > 0 ? [] : Set((vault?.contents.sessions ?? [:]).keys.map(\.group))
        return .removed(count: count, known: known)
    }
}
