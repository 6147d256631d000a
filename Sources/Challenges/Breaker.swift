// SPDX-License-Identifier: Apache-2.0

/// Prevents a wrong password from locking its account. At each origin, only one request at a time tries a credential
/// until it has been accepted once. After one rejection, the credential is not tried there again until it changes or is
/// reset.
///
/// A rejection outlives an acceptance: if another request in flight with the same credential is accepted, the rejection
/// stands.
package struct Breaker: Sendable {
    /// A version of an enrolled credential, at one origin.
    package struct Key: Hashable, Sendable {
        package let origin: Origin
        package let credential: CredentialReference

        package init(origin: Origin, credential: CredentialReference) {
            self.origin = origin
            self.credential = credential
        }
    }

    /// Whether a request may answer with the credential.
    package enum Permission: Equatable, Sendable {
        /// Yes: no other request is trying it, or it has been accepted before. The caller must call
        /// ``attemptEnded(_:_:)``.
        case go
        /// Another request is trying it for the first time. Request permission again when that attempt has ended.
        case wait
        /// No, for the given reason, which appears in `Proxy-Status`.
        case refused(reason: String)
    }

    /// How an attempt ended.
    package enum Result: Equatable, Sendable {
        case accepted
        case rejected
        /// The origin neither accepted nor rejected it: the connection was lost, or the request was abandoned.
        case inconclusive
    }

    private enum Entry: Equatable {
        case trying
        case accepted(since: UInt64)
        case rejected
    }

    /// The largest number of keys. Beyond it, the oldest acceptance is evicted; rejections are never evicted.
    package let capacity: Int
    private var entries: [Key: Entry] = [:]
    private var acceptances: UInt64 = 0

    package init(capacity: Int = 4096) {
        self.capacity = capacity
    }

    /// Requests permission to answer with `key`.
    package mutating func attemptRequested(_ key: Key) -> Permission {
        switch entries[key] {
        case nil:
            guard makeRoom() else { return .refused(reason: "too many rejected credentials are remembered") }
            entries[key] = .trying
            return .go
        case .trying:
            return .wait
        case .accepted:
            return .go
        case .rejected:
            return .refused(reason: "credential \"\(key.credential.name)\" was rejected here and has not changed since")
        }
    }

    /// Ends an attempt that was permitted. Returns true if the requests that wait may ask again.
    package mutating func attemptEnded(_ key: Key, _ result: Result) -> Bool {
        let before = entries[key]
        switch (before, result) {
        case (.rejected, .accepted), (.rejected, .rejected), (.rejected, .inconclusive):
            break
        case (nil, .rejected), (.trying, .rejected), (.accepted, .rejected):
            // If the table is full, the rejection need not be stored, because no new key is permitted any longer.
            if before != nil || makeRoom() { entries[key] = .rejected }
        case (nil, .accepted), (.trying, .accepted), (.accepted, .accepted):
            acceptances &+= 1
            if before != nil || makeRoom() { entries[key] = .accepted(since: acceptances) }
        case (.trying, .inconclusive):
            entries[key] = nil
        case (nil, .inconclusive), (.accepted, .inconclusive):
            break
        }
        return before == .trying
    }

    /// Removes all entries of the credentials named `credential`, at every origin. Attempts in progress are not
    /// affected.
    package mutating func reset(credential: String) {
        entries = entries.filter { $0.key.credential.name != credential || $0.value == .trying }
    }

    /// Whether an answer with `key` has been rejected. Unlike ``attemptRequested(_:)``, this starts no attempt.
    package func isRejected(_ key: Key) -> Bool { entries[key] == .rejected }

    /// Whether a request is trying `key` for the first time.
    package func isTried(_ key: Key) -> Bool { entries[key] == .trying }

    /// The number of stored keys.
    package var count: Int { entries.count }

    private mutating func makeRoom() -> Bool {
        guard entries.count >= capacity else { return true }
        var oldest: (key: Key, since: UInt64)?
        for (key, entry) in entries {
            if case .accepted(let since) = entry, since < oldest?.since ?? .max { oldest = (key, since) }
        }
        guard let oldest else { return false }
        entries[oldest.key] = nil
        return true
    }
}
