// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Testing

@testable import CountersignChallenges

/// A breaker that many requests share, at a time that the test sets.
final class SharedBreaker {
    private(set) var breaker: Breaker
    var now: Int64 = 1_800_000_000

    init(capacity: Int = 4096) { breaker = Breaker(capacity: capacity) }

    func ask(_ key: Breaker.Key, _ path: String = "/") -> Breaker.Decision {
        let decision = breaker.decide(key, for: Self.request(path), at: now)
        if decision == .mayTry { breaker.attemptBegan(key, for: Self.request(path), owner: 1, at: now) }
        return decision
    }

    @discardableResult
    func end(_ key: Breaker.Key, _ result: Breaker.Result) -> Breaker.Finding { end(key, "/", result) }

    @discardableResult
    func end(_ key: Breaker.Key, _ path: String, _ result: Breaker.Result) -> Breaker.Finding {
        breaker.attemptEnded(key, for: Self.request(path), result, owner: 1, at: now)
    }

    @discardableResult
    func attempt(_ key: Breaker.Key, _ result: Breaker.Result) -> Breaker.Finding { attempt(key, "/", result) }

    /// Tries the credential, and expects to be permitted to.
    @discardableResult
    func attempt(_ key: Breaker.Key, _ path: String, _ result: Breaker.Result) -> Breaker.Finding {
        let decision = ask(key, path)
        #expect(decision == .mayTry || decision == .free, "\(decision)")
        return end(key, path, result)
    }

    /// Sends the credential if that is permitted. Returns whether it was.
    func sends(_ key: Breaker.Key, _ path: String, _ result: Breaker.Result) -> Bool {
        switch ask(key, path) {
        case .free, .mayTry:
            end(key, path, result)
            return true
        case .wait, .refused, .unsuitable: return false
        }
    }

    /// As another process sees it that has just read the shared records.
    func elsewhere() -> SharedBreaker {
        let other = SharedBreaker()
        other.now = now
        other.breaker = breaker
        other.restart()
        return other
    }

    /// The process ends, and another one reads the records.
    func restart() {
        var accounts = breaker.accounts
        for account in accounts.keys {
            accounts[account]?.provenAt = nil
        }
        breaker = Breaker(capacity: breaker.capacity, accounts: accounts)
    }

    /// The processes of all attempts have been killed.
    func killAll() {
        breaker.abandonAttempts(at: now) { _ in false }
        restart()
    }

    /// An acceptance at another site, which ends the pause of the account, and not that of a space.
    func acceptElsewhere() { attempt(.test(host: "elsewhere.corp.example"), .accepted) }

    func retry(_ name: String? = nil) -> [String] { breaker.permitRetry(of: name, at: now) }

    private static func request(_ path: String) -> Breaker.RequestTag { .init(method: "GET", target: path) }
}

extension Breaker.Key {
    static func test(
        host: String = "wiki.corp.example", realm: String? = "r", password: String = "pw", name: String = "enrollment",
        generation: UInt64 = 7
    ) -> Breaker.Key {
        let origin = Origin(scheme: .https, host: host, port: 443)
        let credential = PasswordCredential(
            name: name, user: "jdoe", password: Secret(utf8: password), generation: generation)
        return Breaker.Key(
            space: AuthenticationSpace(origin: origin, realm: realm, scheme: .basic),
            credential: credential.tagged(with: Secret(utf8: "key")).reference)
    }
}
