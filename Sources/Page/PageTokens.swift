// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// Who may see the page: a browser that was opened with a one-time token gets a session in exchange for it. The session
/// is no cookie, so that no page of another origin can make the browser send it.
final class PageTokens: Sendable {
    private struct State {
        /// The oldest first.
        var unused: [(token: Secret, until: Int64)] = []
        var sessions: [(token: Secret, until: Int64)] = []
    }

    private let state = Mutex(State())

    /// How long a one-time token counts, in seconds.
    static let tokenSeconds: Int64 = 120
    /// How long a session counts without a request, in seconds.
    static let sessionSeconds: Int64 = 12 * 3600
    /// The most tokens and the most sessions; beyond that, the oldest ends.
    static let limit = 16
    static let randomBytes = 32

    /// `random` has ``randomBytes`` bytes. `now` is in monotonic seconds.
    func makeToken(random: [UInt8], now: Int64) -> String {
        let text = Base64URL.encode(random)
        state.withLock { Self.add(text, until: now + Self.tokenSeconds, to: &$0.unused) }
        return text
    }

    /// Exchanges a one-time token for a session; nil if it does not count.
    func session(for token: String, random: [UInt8], now: Int64) -> String? {
        let session = Base64URL.encode(random)
        return state.withLock { state in
            guard Self.take(token, from: &state.unused, now) else { return nil }
            Self.add(session, until: now + Self.sessionSeconds, to: &state.sessions)
            return session
        }
    }

    /// Whether the session counts. It does so longer, then.
    func accepts(session: String, now: Int64) -> Bool {
        state.withLock { state in
            guard Self.take(session, from: &state.sessions, now) else { return false }
            Self.add(session, until: now + Self.sessionSeconds, to: &state.sessions)
            return true
        }
    }

    private static func add(_ text: String, until: Int64, to tokens: inout [(token: Secret, until: Int64)]) {
        tokens.append((Secret(utf8: text), until))
        if tokens.count > limit { tokens.removeFirst() }
    }

    /// Removes a token that counts, and those that no longer do.
    private static func take(
        _ text: String, from tokens: inout [(token: Secret, until: Int64)], _ now: Int64
    ) -> Bool {
        tokens.removeAll { $0.until < now }
        let wanted = Secret(utf8: text)
        // Compares with each, so that the time says nothing.
        var found: Int?
        for (index, entry) in tokens.enumerated() where entry.token == wanted { found = index }
        if let found { tokens.remove(at: found) }
        return found != nil
    }
}
