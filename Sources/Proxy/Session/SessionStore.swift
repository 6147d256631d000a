// SPDX-License-Identifier: Apache-2.0

import CountersignCookies
import Synchronization

/// The shared sessions of a home as its proxies use them: what the vault has, and the changes that are not in it yet.
/// All event loops share it.
package final class SessionStore: Sendable {
    /// Changes that are not in the vault yet, in their order.
    package typealias Changes = [SharedSession.Key: [SharedSession.Change]]

    fileprivate struct State {
        var isOpen = false
        var stored: [SharedSession.Key: SharedSession] = [:]
        var changes: Changes = [:]
        /// ``stored`` with ``changes``.
        var current: [SharedSession.Key: SharedSession] = [:]
    }

    private let state = Mutex(State())
    private let isPublicSuffix: @Sendable (String) -> Bool

    /// A cookie that only gets a later expiry is stored again if that is so many seconds later.
    fileprivate static let expiryStep: Int64 = 60
    /// More changes than these are not kept while the vault cannot be written.
    fileprivate static let changesLimit = 1024

    /// `isPublicSuffix`: whether anybody can register names below a domain.
    package init(isPublicSuffix: @escaping @Sendable (String) -> Bool) {
        self.isPublicSuffix = isPublicSuffix
    }

    // MARK: Requests and responses

    /// The session of that key; nil if there is none, or the vault is closed.
    func session(_ key: SharedSession.Key) -> SharedSession? { state.withLock { $0.current[key] } }

    /// Takes the named cookies from the Set-Cookie fields of a response of the session's host. `path` is the request's.
    func received(
        _ fields: [ArraySlice<UInt8>], named names: [String], path: ArraySlice<UInt8>, for key: SharedSession.Key,
        now: Int64
    ) {
        let reader = SetCookieReader(host: key.host, names: names, now: now, isPublicSuffix: isPublicSuffix)
        let changes = fields.compactMap { reader.change($0, requestPath: path) }
        guard !changes.isEmpty else { return }
        state.withLock { state in
            guard state.isOpen else { return }
            for change in changes { state.add(change, to: key) }
        }
    }

    // MARK: The vault

    /// Takes over the sessions of the vault. `written` are the changes that they contain already; other changes stay.
    package func adopt(_ sessions: [SharedSession.Key: SharedSession], written: Changes = [:]) {
        state.withLock { state in
            for (key, changes) in written {
                let rest = (state.changes[key] ?? []).dropFirst(changes.count)
                state.changes[key] = rest.isEmpty ? nil : Array(rest)
            }
            guard !state.isOpen || state.stored != sessions || !written.isEmpty else { return }
            state.isOpen = true
            state.stored = sessions
            state.current = sessions
            for (key, changes) in state.changes {
                for change in changes { state.applyCurrent(change, to: key) }
            }
        }
    }

    /// The vault is closed: no request gets a cookie, and none is taken.
    package func close() {
        state.withLock { $0 = State() }
    }

    /// The changes that have to be written: those since the last time, and the ends of cookies that have expired at
    /// `now`, in seconds since 1970. ``adopt(_:written:)`` must follow once they are.
    package func changes(at now: Int64) -> Changes {
        state.withLock { state in
            for (key, session) in state.current {
                for identity in session.expired(at: now) { state.add(.remove(identity), to: key) }
            }
            return state.changes
        }
    }
}

extension SessionStore.State {
    fileprivate mutating func add(_ change: SharedSession.Change, to key: SharedSession.Key) {
        guard !isRepetition(change, of: key), changes.values.reduce(0, { $0 + $1.count }) < SessionStore.changesLimit,
            applyCurrent(change, to: key)
        else { return }
        changes[key, default: []].append(change)
    }

    /// Returns whether the change is possible.
    @discardableResult
    fileprivate mutating func applyCurrent(_ change: SharedSession.Change, to key: SharedSession.Key) -> Bool {
        var session = current[key] ?? SharedSession(key: key)
        let isApplied = session.apply(change)
        current[key] = session.cookies.isEmpty ? nil : session
        return isApplied
    }

    /// Whether the session has the cookie already, with nearly the same end.
    private func isRepetition(_ change: SharedSession.Change, of key: SharedSession.Key) -> Bool {
        guard case .set(let new) = change,
            let known = current[key]?.cookies.first(where: { $0.identity == new.identity }),
            known.value == new.value, known.isSecure == new.isSecure, known.isHTTPOnly == new.isHTTPOnly,
            known.sameSite == new.sameSite, (known.expires == nil) == (new.expires == nil)
        else { return false }
        return abs(known.end - new.end) < SessionStore.expiryStep
    }
}
