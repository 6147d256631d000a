// SPDX-License-Identifier: Apache-2.0

/// The clients of a line of the allowed-sites list: the value of `for=`.
///
/// Words are separated by commas. Those without `!` are alternatives: one of them must be true. Those with `!` exclude:
/// all of them must be false. With `!` words alone, every client that they do not exclude is permitted. What is not
/// known is neither true nor false, so it permits nothing, and a `!` word about it excludes.
package struct ClientRule: Hashable, Sendable {
    package enum Word: Hashable, Sendable {
        /// A name, or a number in decimal digits.
        case user(String)
        /// A name, or a number in decimal digits. Supplementary groups count.
        case group(String)
        /// A unit of the system's manager.
        case unit(String)
        /// A unit of a user's manager.
        case userUnit(String)
        /// The path of a control group (version 2); the groups below it count.
        case controlGroup(String)
        /// The name of a container of podman or docker, or at least the first 12 digits of its ID.
        case container(String)
        /// The path of a file. The running executable must be this very file, by device and inode.
        case executable(String)
        /// The name of a client token.
        case token(String)
        /// The name of a listening Unix-domain socket.
        case socket(String)
    }

    /// The alternatives, in the order of the line.
    package let permitted: [Word]
    package let excluded: [Word]

    init(permitted: [Word], excluded: [Word]) {
        self.permitted = permitted
        self.excluded = excluded
    }

    package func permits(_ facts: ClientFacts) -> Bool {
        !excludes(facts) && (permitted.isEmpty || permitted.contains { $0.isTrue(of: facts) == true })
    }

    /// Whether a `!` word excludes the client.
    package func excludes(_ facts: ClientFacts) -> Bool { !excluded.allSatisfy { $0.isTrue(of: facts) == false } }

    package var words: [Word] { permitted + excluded }
}

extension ClientRule.Word {
    /// Nil if the facts do not say it.
    func isTrue(of facts: ClientFacts) -> Bool? {
        switch self {
        case .user(let name):
            guard let uid = facts.uid, let wanted = Self.number(name) ?? facts.names.users[name] else { return nil }
            return uid == wanted
        case .group(let name):
            guard let groups = facts.groups, let wanted = Self.number(name) ?? facts.names.groups[name] else {
                return nil
            }
            return groups.contains(wanted)
        case .unit(let name): return facts.controlGroup.map { $0.unit == name }
        case .userUnit(let name): return facts.controlGroup.map { $0.userUnit == name }
        case .controlGroup(let path): return facts.controlGroup?.isWithin(path)
        case .container(let name): return Self.isContainer(name, facts)
        case .executable(let path):
            guard let executable = facts.executable, let wanted = facts.names.executables[path] else { return nil }
            return executable.file == wanted
        case .token(let name): return facts.token.map { $0 == .named(name) }
        case .socket(let name): return facts.socket.map { $0 == .named(name) }
        }
    }

    private static func isContainer(_ name: String, _ facts: ClientFacts) -> Bool? {
        guard let group = facts.controlGroup else { return nil }
        guard let id = group.containerID else { return false }
        if name.utf8.count >= 12, id.hasPrefix(name) { return true }
        return facts.containerNames?.contains(name)
    }

    /// The number of a user or group; nil if `text` is a name.
    package static func number(_ text: String) -> UInt32? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? UInt32(text) : nil
    }
}

extension ClientRule: CustomStringConvertible {
    /// As in a line, after `for=`.
    package var description: String {
        (permitted.map(\.description) + excluded.map { "!\($0)" }).joined(separator: ",")
    }
}
