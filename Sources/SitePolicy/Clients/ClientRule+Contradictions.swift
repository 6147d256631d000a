// SPDX-License-Identifier: Apache-2.0

extension ClientRule {
    /// Whether each client of `other` is one of these, as far as their words show.
    func covers(_ other: ClientRule) -> Bool {
        guard excluded.allSatisfy(other.excluded.contains) else { return false }
        return permitted.isEmpty || !other.permitted.isEmpty && other.permitted.allSatisfy(permitted.contains)
    }

    /// Remarks about why no client is permitted by the `for=` at `location`, or by it together with that of its line's
    /// credential.
    func contradictions(at location: String, with credential: CredentialClients?) -> [SiteRemark] {
        if let (word, obstacle) = permitted.exclusion(by: excluded) {
            return [
                SiteRemark(
                    message: "\(location): for= permits no client: !\(obstacle) excludes \(word)",
                    hint: "remove one of the two words")
            ]
        }
        guard let credential else { return [] }
        let others = credential.clients
        let excluding =
            permitted.exclusion(by: others.excluded) != nil || others.permitted.exclusion(by: excluded) != nil
        let parting = permitted.contains { word in others.permitted.contains { !word.excludes($0) } }
        guard excluding || !permitted.isEmpty && !others.permitted.isEmpty && !parting else { return [] }
        return [
            SiteRemark(
                message: "\(location): no client may use the line and its credential: \(credential.location) permits "
                    + "others",
                hint: "both must permit a client: change one of the two for=, or the line's credential=")
        ]
    }
}

extension [ClientRule.Word] {
    /// If the words exclude all clients of which one of these is true: a word of each.
    fileprivate func exclusion(by excluded: [ClientRule.Word]) -> (ClientRule.Word, by: ClientRule.Word)? {
        var first: (ClientRule.Word, by: ClientRule.Word)?
        for word in self {
            guard let obstacle = excluded.first(where: word.implies) else { return nil }
            first = first ?? (word, obstacle)
        }
        return first
    }
}

extension ClientRule.Word {
    /// Whether `other` is true of each client of which this word is.
    fileprivate func implies(_ other: ClientRule.Word) -> Bool {
        if self == other { return true }
        switch (self, other) {
        case (.controlGroup(let path), .controlGroup(let ancestor)): return path.hasPrefix(ancestor + "/")
        case (.container(let long), .container(let short)):
            return short.utf8.count >= 12 && long.hasPrefix(short) && long.utf8.allSatisfy(ControlGroup.isHexDigit)
        default: return false
        }
    }

    /// Whether the two are never true of one client: it has one unit, one token and one socket. Users and files may
    /// have several names.
    fileprivate func excludes(_ other: ClientRule.Word) -> Bool {
        switch (self, other) {
        case (.unit, .unit), (.userUnit, .userUnit), (.token, .token), (.socket, .socket): self != other
        default: false
        }
    }
}
