// SPDX-License-Identifier: Apache-2.0

/// What must be found out about a client, so that every `for=` of a list can be decided.
package struct ClientNeeds: Equatable, Sendable {
    /// The names of users and groups that are not numbers.
    package private(set) var users: Set<String> = []
    package private(set) var groups: Set<String> = []
    /// The paths of `exe:`.
    package private(set) var executables: Set<String> = []
    /// Whether the numbers of the client's groups are needed.
    package private(set) var needsGroups = false
    /// Whether the client's control group is needed.
    package private(set) var needsControlGroup = false
    /// Whether the names of the client's container are needed.
    package private(set) var needsContainerNames = false
    /// Whether a word asks for something that only the client's process can tell.
    package private(set) var needsProcess = false

    /// Nil if there are no rules, so that nothing about clients needs to be known.
    package init?(_ rules: some Sequence<ClientRule>) {
        var hasRules = false
        for rule in rules {
            hasRules = true
            for word in rule.words { add(word) }
        }
        guard hasRules else { return nil }
    }

    /// What `needs` has, with the client's program and control group.
    package static func program(and needs: ClientNeeds?) -> ClientNeeds {
        var all = needs ?? ClientNeeds()
        (all.needsProcess, all.needsControlGroup) = (true, true)
        return all
    }

    private init() {}

    private mutating func add(_ word: ClientRule.Word) {
        switch word {
        case .user(let name): if ClientRule.Word.number(name) == nil { users.insert(name) }
        case .group(let name):
            if ClientRule.Word.number(name) == nil { groups.insert(name) }
            (needsProcess, needsGroups) = (true, true)
        case .executable(let path):
            executables.insert(path)
            needsProcess = true
        case .unit, .userUnit, .controlGroup: (needsProcess, needsControlGroup) = (true, true)
        case .container(let name):
            (needsProcess, needsControlGroup) = (true, true)
            let isID = name.utf8.count >= 12 && name.utf8.allSatisfy(ControlGroup.isHexDigit)
            if !isID { needsContainerNames = true }
        case .token, .socket: break
        }
    }
}
