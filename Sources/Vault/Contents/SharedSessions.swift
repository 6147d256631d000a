// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import CountersignCryptography

extension VaultContents {
    /// Whether the contents are the same but for the shared sessions.
    package func differsInSessionsOnly(from other: VaultContents) -> Bool {
        guard generation != other.generation || sessions != other.sessions else { return true }
        var copy = self
        copy.sessions = other.sessions
        copy.generation = other.generation
        return copy == other
    }

    /// Makes changes to a shared session, which is created with its first cookie and removed with its last one. Omits
    /// changes for which there is no room, and cookies that the host may not set. Returns the number of the others.
    /// Throws `invalidRecord` for a key outside ``VaultLimits``.
    @discardableResult
    package mutating func changeSession(
        _ key: SharedSession.Key, _ changes: [SharedSession.Change]
    ) throws(VaultError) -> Int {
        guard VaultLimits.isSession(key) else {
            throw VaultError(
                .invalidRecord, "\(key.group.debugDescription) and \(key.host.debugDescription) name no session")
        }
        let before = sessions[key]
        var session = before ?? SharedSession(key: key)
        var count = 0
        for change in changes where session.apply(change) { count += 1 }
        let after = session.cookies.isEmpty ? nil : session
        guard after != before else { return count }
        advance()
        sessions[key] = after
        return count
    }

    /// Replaces a shared session. Throws `invalidRecord` for one outside the limits; one without cookies is removed.
    package mutating func setSession(_ session: SharedSession) throws(VaultError) {
        if let fault = VaultLimits.fault(of: session) {
            throw VaultError(.invalidRecord, "the session has \(fault)")
        }
        let after = session.cookies.isEmpty ? nil : session
        guard sessions[session.key] != after else { return }
        advance()
        sessions[session.key] = after
    }

    /// Removes the shared sessions of a group and a host, or of all if nil, and returns how many there were.
    @discardableResult
    package mutating func removeSessions(group: String?, host: String?) -> Int {
        let found = sessions.keys.filter { (group ?? $0.group) == $0.group && (host ?? $0.host) == $0.host }
        guard !found.isEmpty else { return 0 }
        advance()
        for key in found { sessions[key] = nil }
        return found.count
    }
}

extension VaultLimits {
    static func isSession(_ key: SharedSession.Key) -> Bool { isName(key.group) && isHost(key.host) }

    /// Why the record cannot be stored; nil if it can.
    static func fault(of session: SharedSession) -> String? {
        isSession(session.key) ? session.fault : "a group or host that is not a name"
    }
}

extension RecordWriter {
    mutating func append(_ session: SharedSession) {
        field(session.key.group)
        field(session.key.host)
        append(UInt32(session.cookies.count))
        for cookie in session.cookies {
            field(cookie.name)
            field(cookie.value)
            field(cookie.domain)
            field(cookie.path)
            for isSet in [cookie.isHostOnly, cookie.isSecure, cookie.isHTTPOnly] { append(UInt8(isSet ? 1 : 0)) }
            append(cookie.sameSite.rawValue)
            append(UInt8(cookie.expires == nil ? 0 : 1))
            if let expires = cookie.expires { append(UInt64(clamping: expires)) }
            append(UInt64(clamping: cookie.stored))
        }
    }
}

extension RecordReader {
    mutating func session() throws(VaultError) -> SharedSession {
        var session = SharedSession(key: SharedSession.Key(group: try text(), host: try text()))
        let count = try number(UInt32.self)
        guard count <= SharedSession.maximumCookies else { throw Self.malformed("a session with \(count) cookies") }
        for _ in 0..<count {
            let cookie = try cookie()
            guard !session.cookies.contains(where: { $0.identity == cookie.identity }), session.apply(.set(cookie))
            else { throw Self.malformed("a session's cookie") }
        }
        if count == 0 { throw Self.malformed("a session without cookies") }
        if let fault = VaultLimits.fault(of: session) { throw Self.malformed("a session with \(fault)") }
        return session
    }

    private mutating func cookie() throws(VaultError) -> Cookie {
        let (name, value) = (try text(), try mayBeEmptySecret(upTo: Cookie.maximumBytes))
        let (domain, path) = (try text(), try text())
        let (isHostOnly, isSecure, isHTTPOnly) = (try flag(), try flag(), try flag())
        guard let sameSite = Cookie.SameSite(rawValue: try number(UInt8.self)) else {
            throw Self.malformed("a cookie's SameSite")
        }
        let expires = try flag() ? try time() : nil
        return Cookie(
            Cookie.Identity(name: name, domain: domain, isHostOnly: isHostOnly, path: path), value: value,
            isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires, stored: try time())
    }
}
