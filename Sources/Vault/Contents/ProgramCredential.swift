// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A credential whose password or token a program writes when it is needed, so that the vault does not contain it.
package struct ProgramCredential: Equatable, Sendable {
    package let name: String
    /// The user name of a password; nil for a bearer token.
    package let user: String?
    /// The absolute path of the program, and its arguments. No shell runs it.
    package let words: [String]
    /// For how many seconds what it has written is used before it is run again; nil without an end.
    package let keepSeconds: Int64?
    /// Grows each time the credential is set.
    package let generation: UInt64

    init(name: String, user: String?, words: [String], keepSeconds: Int64?, generation: UInt64) {
        self.name = name
        self.user = user
        self.words = words
        self.keepSeconds = keepSeconds
        self.generation = generation
    }

    /// Limits of the words' number and of their bytes together.
    static let mostWords = 64
    static let mostBytes = 4096
    /// The shortest and the longest time: a second, and a year.
    package static let keepLimits = Int64(1)...31_622_400

    /// Why these words or this time cannot be stored; nil if they can be.
    package static func fault(words: [String], keepSeconds: Int64?) -> String? {
        guard let program = words.first, program.hasPrefix("/") else {
            return "a program is named by its absolute path"
        }
        guard words.count <= mostWords, words.reduce(0, { $0 + $1.utf8.count }) <= mostBytes else {
            return "a program has at most \(mostWords) words and \(mostBytes) bytes"
        }
        guard words.allSatisfy({ word in word.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }) else {
            return "a word of the program has a control character"
        }
        guard keepSeconds.map(keepLimits.contains) ?? true else { return "the time is not between a second and a year" }
        return nil
    }
}

extension VaultContents {
    /// Adds a credential whose secret a program writes: a password for `user`, or a bearer token without one. Replaces
    /// a credential of the same name and kind. Throws `invalidRecord` for a value outside the limits, and `nameInUse`
    /// if a credential of another kind has the name.
    @discardableResult
    package mutating func setProgram(
        name: String, user: String?, words: [String], keepSeconds: Int64?
    ) throws(VaultError) -> ProgramCredential {
        try VaultLimits.check(name: name)
        if let user { try VaultLimits.check(user: user) }
        if let fault = ProgramCredential.fault(words: words, keepSeconds: keepSeconds) {
            throw VaultError(.invalidRecord, fault)
        }
        guard signIns[name] == nil else { throw Self.signInHasName(name) }
        guard principals[name] == nil else { throw Self.nameInUse(name, by: "a Kerberos principal") }
        if user == nil {
            guard credentials[name] == nil else { throw Self.nameInUse(name, by: "a user name and password") }
        } else {
            guard tokens[name] == nil else { throw Self.nameInUse(name, by: "a token") }
        }
        try checkProgram(name, isToken: user == nil)
        advance()
        withoutCredential(named: name)
        let program = ProgramCredential(
            name: name, user: user, words: words, keepSeconds: keepSeconds, generation: generation)
        programs[name] = program
        return program
    }

    /// Throws `nameInUse` if a program writes a secret of the other kind for a credential of that name.
    func checkProgram(_ name: String, isToken: Bool) throws(VaultError) {
        guard let program = programs[name], (program.user == nil) != isToken else { return }
        throw Self.nameInUse(name, by: isToken ? "a user name and password" : "a token")
    }
}

extension RecordWriter {
    mutating func append(_ program: ProgramCredential) {
        field(program.name)
        field(program.user ?? "")
        append(UInt32(program.words.count))
        for word in program.words { field(word) }
        append(UInt64(clamping: program.keepSeconds ?? 0))
        append(program.generation)
    }
}

extension RecordReader {
    /// The fields after the name.
    mutating func program(named name: String, writtenIn vaultGeneration: UInt64) throws(VaultError) -> ProgramCredential
    {
        let user = try text()
        guard user.isEmpty || VaultLimits.isUser(user) else { throw Self.malformed("a user name") }
        let count = try number(UInt32.self)
        guard count <= ProgramCredential.mostWords else { throw Self.malformed("\(count) words of a program") }
        var words: [String] = []
        for _ in 0..<count { words.append(try text()) }
        let seconds = try time()
        let keepSeconds = seconds == 0 ? nil : seconds
        guard ProgramCredential.fault(words: words, keepSeconds: keepSeconds) == nil else {
            throw Self.malformed("a program")
        }
        let generation = try number(UInt64.self)
        guard generation <= vaultGeneration else { throw Self.malformed("a credential's generation") }
        return ProgramCredential(
            name: name, user: user.isEmpty ? nil : user, words: words, keepSeconds: keepSeconds, generation: generation)
    }
}
