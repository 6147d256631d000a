// SPDX-License-Identifier: Apache-2.0

/// What changes the records apart from attempts: other processes, the passage of time, and the user.
extension Breaker {
    /// Removes records without failures that have not changed since the first time, and rejections from before the
    /// second.
    package mutating func removeRecords(unchangedSince time: Int64, rejectionsSince rejected: Int64, at now: Int64) {
        schemes.removeOld(at: now)
        for (account, record) in accounts {
            let spaces = record.spaces.filter { _, record in
                record.rejection.map { $0.at >= rejected } ?? (record.pending != nil || record.changedAt >= time)
            }
            accounts[account]?.spaces = spaces
            if spaces.isEmpty { accounts[account] = nil }
        }
    }

    /// Spaces that `known` has seen to accept an account, and that still do, are free for all requests.
    package mutating func confirm(as known: Breaker) {
        for (account, record) in known.accounts {
            for (space, record) in record.spaces where record.isConfirmed {
                guard let new = accounts[account]?.spaces[space], new.acceptedAt != nil, new.doubtful.isEmpty else {
                    continue
                }
                accounts[account]?.spaces[space]?.isConfirmed = true
            }
        }
    }

    /// The credential `name` has been changed or removed: records of other accounts no longer bear its name.
    package mutating func nameChanged(_ name: String, to account: Account?) {
        for (key, record) in accounts where record.name == name && key != account { accounts[key]?.name = "" }
    }

    /// Permits one more attempt with the credentials named `name`, or with all: the next one, wherever it is, must be
    /// accepted, or wait as if the limit had been reached. Returns the names of those that had failed, or that were
    /// withheld from weaker offers, which they may answer now. Attempts in progress are not affected.
    package mutating func permitRetry(of name: String?, at now: Int64) -> [String] {
        var names = schemes.permitWeaker(for: name)
        for (key, account) in accounts where name.map({ $0 == account.name }) ?? !account.name.isEmpty {
            guard
                account.failures(at: now) > 0 || account.unaccepted.count(at: now) > 0
                    || account.spaces.values.contains(where: { $0.isInDoubt(at: now) })
            else { continue }
            names.insert(account.name)
            accounts[key]?.carriedFailures = min(account.rejections, Self.maximumFailures - 1)
            accounts[key]?.unaccepted = .allButOne(at: now)
            for space in account.spaces.keys {
                accounts[key]?.spaces[space]?.rejection = nil
                accounts[key]?.spaces[space]?.forgetUnaccepted()
                accounts[key]?.spaces[space]?.isConfirmed = false
            }
        }
        return names.sorted()
    }
}
