// SPDX-License-Identifier: Apache-2.0

/// Changes of the records apart from attempts: by other processes, the passage of time, and the user.
extension Breaker {
    /// Removes records without failures that have not changed since the first time, and rejections from before the
    /// second.
    package mutating func removeRecords(unchangedSince time: Int64, rejectionsSince rejected: Int64, at now: Int64) {
        schemes.removeOld(at: now)
        for (account, record) in accounts {
            let spaces = record.spaces.filter { _, record in
                record.rejection.map { $0.at >= rejected } ?? (!record.attempts.isEmpty || record.changedAt >= time)
            }
            accounts[account]?.spaces = spaces
            if spaces.isEmpty { accounts[account] = nil }
        }
    }

    /// Takes over the proofs of `known`, unless something casts doubt on them.
    package mutating func confirm(as known: Breaker) {
        for (account, record) in known.accounts where record.provenAt != nil {
            guard let new = accounts[account], new.begunInDoubt <= record.begunInDoubt else { continue }
            accounts[account]?.provenAt = record.provenAt
        }
    }

    /// The credential `name` has been changed or removed: records of other accounts no longer bear its name.
    package mutating func nameChanged(_ name: String, to account: Account?) {
        for (key, record) in accounts where record.name == name && key != account { accounts[key]?.name = "" }
    }

    /// Permits one more attempt with the credentials named `name`, or with all: the next one, wherever it is, must be
    /// accepted, or the following one waits. Returns the names of those that had failed, or that were withheld from
    /// weaker offers, which they may answer now. Attempts in progress are not affected.
    package mutating func permitRetry(of name: String?, at now: Int64) -> [String] {
        var names = schemes.permitWeaker(for: name)
        for (key, account) in accounts where name.map({ $0 == account.name }) ?? !account.name.isEmpty {
            guard
                account.failures(at: now) > 0 || account.unaccepted.count(at: now) > 0
                    || account.spaces.values.contains(where: { $0.isInDoubt(at: now) })
            else { continue }
            names.insert(account.name)
            accounts[key]?.carriedFailures = min(account.rejections, Self.limit - 1)
            accounts[key]?.unaccepted = UnacceptedAnswers(count: Self.limit - 1, at: now)
            accounts[key]?.provenAt = nil
            for space in account.spaces.keys {
                accounts[key]?.spaces[space]?.rejection = nil
                accounts[key]?.spaces[space]?.forgetUnaccepted()
            }
        }
        return names.sorted()
    }
}
