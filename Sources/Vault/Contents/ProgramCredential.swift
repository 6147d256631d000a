// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A credential whose password, token or keys a program writes when they are needed, so that the vault does not contain
/// them.
package struct ProgramCredential: Equatable, Sendable {
    /// What a program writes.
    package enum Written: Equatable, Sendable {
        /// The first line is the password of this user.
        case password(user: String)
        /// The first line is a bearer token.
        case token
        /// The output is that of a `credential_process` of AWS' tools.
        case awsKeys

        fileprivate var description: String {
            switch self {
            case .password: "a user name and password"
            case .token: "a token"
            case .awsKeys: VaultContents.keysOfAWS
            }
        }

        /// Whether secrets of the two may replace each other.
        fileprivate func isOfKind(_ other: Written) -> Bool { description == other.description }
    }

    package let name: String
    package let written: Written
    /// The absolute path of the program, and its arguments. No shell runs it.
    package let words: [String]
    /// For how many seconds what it has written is used before it is run again; nil without an end.
    package let keepSeconds: Int64?
    /// Grows each time the credential is set.
    package let generation: UInt64

    init(name: String, _ written: Written, words: [String], keepSeconds: Int64?, generation: UInt64) {
        self.name = name
        self.written = written
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

extension ProgramCredential {
    /// The user name of a password; nil for a bearer token and for keys.
    package var user: String? { if case .password(let user) = written { user } else { nil } }
}

extension VaultContents {
    /// Adds a credential whose secret a program writes. Replaces a credential of the same name and kind. Throws
    /// `invalidRecord` for a value outside the limits, and `nameInUse` if a credential of another kind has the name.
    @discardableResult
    package mutating func setProgram(
        name: String, _ written: ProgramCredential.Written, words: [String], keepSeconds: Int64?
    ) throws(VaultError) -> ProgramCredential {
        try VaultLimits.check(name: name)
        if case .password(let user) = written { try VaultLimits.check(user: user) }
        if let fault = ProgramCredential.fault(words: words, keepSeconds: keepSeconds) {
            throw VaultError(.invalidRecord, fault)
        }
        guard signIns[name] == nil else { throw Self.signInHasName(name) }
        guard principals[name] == nil else { throw Self.nameInUse(name, by: "a Kerberos principal") }
        let present: ProgramCredential.Written? =
            credentials[name].map { .password(user: $0.user) } ?? tokens[name].map { _ in .token }
            ?? awsKeys[name].map { _ in .awsKeys }
        if let present, !present.isOfKind(written) { throw Self.nameInUse(name, by: present.description) }
        try checkProgram(name, writes: written)
        advance()
        withoutCredential(named: name)
        let program = ProgramCredential(
            name: name, written, words: words, keepSeconds: keepSeconds, generation: generation)
        programs[name] = program
        return program
    }

    /// The same as ``setProgram(name:_:words:keepSeconds:)`` for a password of `user`, or a token without one.
    @discardableResult
    package mutating func setProgram(
        name: String, user: String?, words: [String], keepSeconds: Int64?
    ) throws(VaultError) -> ProgramCredential {
        try setProgram(
            name: name, user.map { ProgramCredential.Written.password(user: $0) } ?? .token, words: words,
            keepSeconds: keepSeconds)
    }

    /// Throws `nameInUse` if a program writes a secret of another kind for a credential of that name.
    func checkProgram(_ name: String, writes written: ProgramCredential.Written) throws(VaultError) {
        guard let program = programs[name], !program.written.isOfKind(written) else { return }
        throw Self.nameInUse(name, by: program.written.description)
    }
}

extension RecordWriter {
    /// The user is left out of keys of AWS.
    mutating func append(_ program: ProgramCredential) {
        field(program.name)
        if program.written != .awsKeys { field(program.user ?? "") }
        append(UInt32(program.words.count))
        for word in program.words { field(word) }
        append(UInt64(clamping: program.keepSeconds ?? 0))
        append(program.generation)
    }
}

extension RecordReader {
    /// The fields after the name, of a program that writes a password or token, or with `writesAWSKeys`, keys of AWS.
    mutating func program(
        named name: String, writesAWSKeys: Bool, writtenIn vaultGeneration: UInt64
    ) throws(VaultError) -> ProgramCredential {
        let written: ProgramCredential.Written
        if writesAWSKeys {
            written = .awsKeys
        } else {
            let user = try text()
            guard user.isEmpty || VaultLimits.isUser(user) else { throw Self.malformed("a user name") }
            written = user.isEmpty ? .token : .password(user: user)
        }
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
            name: name, written, words: words, keepSeconds: keepSeconds, generation: generation)
    }
}
