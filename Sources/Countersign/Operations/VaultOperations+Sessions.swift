// SPDX-License-Identifier: Apache-2.0

package import CountersignCookies
import CountersignVault

extension VaultOperations {
    /// The current cookies of a session, for an agent that this process runs; nil without any. Not available as a
    /// ``VaultOperation``, because operations take no cookies out of the vault: an agent behind the running server's
    /// proxy gets the cookies from the proxy.
    package func session(_ key: SharedSession.Key) -> SharedSession? {
        guard var session = contents?.sessions[key] else { return nil }
        for identity in session.expired(at: now()) { session.apply(.remove(identity)) }
        return session.cookies.isEmpty ? nil : session
    }
}
