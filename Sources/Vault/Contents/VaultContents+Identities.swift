// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension VaultContents {
    /// Sets how an identity is enrolled. Throws `invalidRecord` for a value outside ``VaultLimits``.
    package mutating func setEnrollment(_ record: EnrollmentRecord) throws(VaultError) {
        try VaultLimits.check(record)
        advance()
        enrollments[record.name] = record
    }

    /// Removes an enrolment and returns whether there was one of that name.
    @discardableResult
    package mutating func removeEnrollment(named name: String) -> Bool {
        guard enrollments.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }

    /// Sets an identity's pending enrolment. Throws `invalidRecord` for a value outside ``VaultLimits``.
    package mutating func setPendingEnrollment(_ record: PendingEnrollment) throws(VaultError) {
        try VaultLimits.check(record)
        advance()
        pendingEnrollments[record.name] = record
    }

    /// Removes a pending enrolment and returns whether there was one of that name.
    @discardableResult
    package mutating func removePendingEnrollment(named name: String) -> Bool {
        guard pendingEnrollments.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }

    // MARK: Keys in tokens

    /// Adds a key that stays in a token and removes any other key of that identity. Throws `invalidRecord` for a value
    /// outside ``VaultLimits``.
    package mutating func setTokenKey(_ key: TokenKey) throws(VaultError) {
        try VaultLimits.check(name: key.name)
        try VaultLimits.check(key.pin, "PIN", upTo: VaultLimits.pinBytes)
        if let fault = key.fault { throw VaultError(.invalidRecord, fault) }
        withoutIdentityKey(named: key.name)
        advance()
        tokenKeys[key.name] = key
        noteAdded(key.name)
    }

    /// Notes that the token has refused the key's PIN, unless the key was changed meanwhile.
    package mutating func refusePIN(of key: TokenKey) {
        guard tokenKeys[key.name] == key, !key.isPINRefused else { return }
        advance()
        tokenKeys[key.name]?.isPINRefused = true
    }

    /// SHA-256 of the leaf certificate of that identity's key; nil if there is no key.
    package func leafSHA256(of name: String) -> [UInt8]? {
        identityKeys[name]?.leafSHA256 ?? tokenKeys[name]?.leafSHA256
    }

    /// Notes that the token has refused the PIN of a pending enrolment.
    package mutating func refusePendingPIN(of key: TokenKey) {
        guard pendingEnrollments[key.name]?.token == key, !key.isPINRefused else { return }
        advance()
        var refused = key
        refused.isPINRefused = true
        pendingEnrollments[key.name]?.set(token: refused)
    }

    /// Removes a key's record and returns whether there was one of that name. The key stays in its token.
    @discardableResult
    package mutating func removeTokenKey(named name: String) -> Bool {
        guard tokenKeys.removeValue(forKey: name) != nil else { return false }
        advance()
        noteRemoved(name)
        return true
    }

    // MARK: Order

    /// Whether the order is not that of the names. The vault stores only such an order.
    var hasOwnOrder: Bool { identityOrder != identityOrder.sorted() }

    mutating func noteAdded(_ name: String) {
        if !identityOrder.contains(name) { identityOrder.append(name) }
    }

    mutating func noteRemoved(_ name: String) { identityOrder.removeAll { $0 == name } }
}
