// SPDX-License-Identifier: Apache-2.0

extension ClientFacts {
    /// A word that is true of no client on this machine.
    package struct ImpossibleWord: Error, Equatable {
        package let word: ClientRule.Word
        /// As the end of a sentence that begins with the word.
        package let reason: String
    }

    /// A client of which all `words` are true. Nothing else is known of it, except that it has sent no other token and
    /// uses no other named socket. `names` has the meaning of those in the words, and of those in the list.
    package init(_ words: [ClientRule.Word], names: Names) throws(ImpossibleWord) {
        self.init()
        self.names = names
        (token, socket) = (Name.none, Name.none)
        // A unit of a user is below that of the user's manager.
        for word in words { if case .user = word { try add(word) } }
        for word in words {
            if case .user = word { continue }
            try add(word)
        }
    }

    private mutating func add(_ word: ClientRule.Word) throws(ImpossibleWord) {
        func impossible(_ reason: String) -> ImpossibleWord { ImpossibleWord(word: word, reason: reason) }
        func group(_ path: String) throws(ImpossibleWord) -> ControlGroup {
            guard controlGroup == nil else { throw impossible("is a second control group") }
            guard let group = ControlGroup(path: path) else { throw impossible("is no control group") }
            return group
        }
        switch word {
        case .user(let name):
            guard let number = ClientRule.Word.number(name) ?? names.users[name] else {
                throw impossible("is no user of this machine")
            }
            guard uid == nil || uid == number else { throw impossible("is a second user") }
            uid = number
        case .group(let name):
            guard let number = ClientRule.Word.number(name) ?? names.groups[name] else {
                throw impossible("is no group of this machine")
            }
            groups = (groups ?? []).union([number])
        case .unit(let name): controlGroup = try group("/system.slice/\(name)")
        case .userUnit(let name):
            let user = uid.map(String.init) ?? "0"
            controlGroup = try group("/user.slice/user-\(user).slice/user@\(user).service/app.slice/\(name)")
        case .controlGroup(let path): controlGroup = try group(path)
        case .container(let name):
            let isID = name.utf8.count >= 12 && name.utf8.allSatisfy(ControlGroup.isHexDigit)
            let id = isID ? String(name.prefix(64)) : ""
            controlGroup = try group(
                "/machine.slice/libpod-\(id)\(String(repeating: "0", count: 64 - id.utf8.count)).scope")
            containerNames = isID ? [] : [name]
        case .executable(let path):
            guard let file = names.executables[path] else { throw impossible("is no file") }
            guard executable == nil else { throw impossible("is a second program") }
            executable = Executable(path: path, file: file)
        case .token(let name):
            guard token == Name.none else { throw impossible("is a second token") }
            token = .named(name)
        case .socket(let name):
            guard socket == Name.none else { throw impossible("is a second socket") }
            socket = .named(name)
        }
    }
}
