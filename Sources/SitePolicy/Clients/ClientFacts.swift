// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// What is known about a client of the proxy. Nil is unknown.
package struct ClientFacts: Hashable, Sendable {
    /// The identity of a file.
    package struct FileIdentity: Hashable, Sendable {
        package let device: UInt64
        package let inode: UInt64

        package init(device: UInt64, inode: UInt64) {
            self.device = device
            self.inode = inode
        }
    }

    package struct Executable: Hashable, Sendable {
        /// For people only: /proc/PID/exe (proc(5)), which ends in ` (deleted)` if the file was removed or replaced.
        package let path: String
        package let file: FileIdentity

        package init(path: String, file: FileIdentity) {
            self.path = path
            self.file = file
        }
    }

    /// A name that a client has or certainly does not have.
    package enum Name: Hashable, Sendable {
        case none
        case named(String)

        package var text: String? { if case .named(let name) = self { name } else { nil } }
    }

    /// What the names in the list stand for on this machine. A name that is missing here is unknown.
    package struct Names: Hashable, Sendable {
        package var users: [String: UInt32] = [:]
        package var groups: [String: UInt32] = [:]
        /// By path.
        package var executables: [String: FileIdentity] = [:]

        package init() {}
    }

    package var uid: UInt32?
    /// The name of ``uid``, for people only: rules compare numbers.
    package var userName: String?
    /// The numbers of all its groups.
    package var groups: Set<UInt32>?
    /// For people only.
    package var pid: Int32?
    package var executable: Executable?
    package var controlGroup: ControlGroup?
    /// The names of its container, besides its ID; empty for none.
    package var containerNames: Set<String>?
    /// The name of the client token that it has sent.
    package var token: Name?
    /// The name of the listening Unix-domain socket to which it is connected.
    package var socket: Name?
    package var names = Names()

    package init(uid: UInt32? = nil) { self.uid = uid }

    /// A word of `for=` that names this client, the most particular one that does not need a script's cooperation; nil
    /// if not even its user is known.
    package var word: ClientRule.Word? {
        if let container = controlGroup?.containerID { return .container(String(container.prefix(12))) }
        return executableWord ?? userWord
    }

    /// The words of `for=` that are true of this client, one of each kind.
    package var words: [ClientRule.Word] {
        let group: ClientRule.Word? =
            if let id = controlGroup?.containerID {
                .container(containerNames?.min() ?? String(id.prefix(12)))
            } else {
                controlGroup?.userUnit.map { .userUnit($0) } ?? controlGroup?.unit.map { .unit($0) }
            }
        let names: [ClientRule.Word?] = [token?.text.map { .token($0) }, socket?.text.map { .socket($0) }]
        return ([userWord, executableWord, group] + names).compactMap(\.self)
    }

    private var userWord: ClientRule.Word? { uid.map { .user(userName ?? String($0)) } }

    private var executableWord: ClientRule.Word? {
        guard let path = executable?.path, ClientRule.isAbsolutePath(path), !path.hasSuffix(" (deleted)") else {
            return nil
        }
        return .executable(path)
    }
}
