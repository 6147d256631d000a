// SPDX-License-Identifier: Apache-2.0

/// Keeps a wrong password from locking its account: at one origin, a credential is tried by one request at a time until it has
/// been accepted once, and never again after one rejection, until it changes or is reset.
///
/// A rejection outlives an acceptance: requests that were on their way with it do not undo it.
package struct Breaker: Sendable {
    /// What is tried: a credential as it was enrolled, at one origin.
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
        /// Yes: nobody else is trying it, or it has been accepted before. ``attemptEnded(_:_:)`` is owed.
        case go
        /// Another request is trying it for the first time: ask again when that has ended.
        case wait
        /// No. The text says why, for `Proxy-Status`.
        case refused(reason: String)
    }

    /// How an attempt ended.
    package enum Result: Equatable, Sendable {
        case accepted
        case rejected
        /// The origin said neither: the connection was lost, the request was given up.
        case inconclusive
    }

    private enum Entry: Equatable {
        case trying
        case accepted(since: UInt64)
        case rejected
    }

    /// How many keys are remembered. Beyond it the oldest acceptance is forgotten; a rejection never is.
    package let capacity: Int
    private var entries: [Key: Entry] = [:]
    private var acceptances: UInt64 = 0

    package init(capacity: Int = 4096) {
        self.capacity = capacity
    }

    /// A request is about to answer with `key`.
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

    /// A request that was told to go has ended. True: those that were told to wait may ask again.
    package mutating func attemptEnded(_ key: Key, _ result: Result) -> Bool {
        let before = entries[key]
        switch (before, result) {
        case (.rejected, .accepted), (.rejected, .rejected), (.rejected, .inconclusive):
            break
        case (nil, .rejected), (.trying, .rejected), (.accepted, .rejected):
            // Without room it need not be remembered: nothing new is tried any more.
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

    /// What was learned of the credential called `credential` is forgotten, at every origin. An attempt on its way goes on.
    package mutating func reset(credential: String) {
        entries = entries.filter { $0.key.credential.name != credential || $0.value == .trying }
    }

    /// Whether an answer with `key` has been rejected. Asks without owing anything.
    package func isRejected(_ key: Key) -> Bool { entries[key] == .rejected }

    /// Whether somebody is trying `key` for the first time.
    package func isTried(_ key: Key) -> Bool { entries[key] == .trying }

    /// How many keys are remembered.
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
