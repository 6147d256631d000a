// SPDX-License-Identifier: Apache-2.0

/// The connections of one program to a running server, as `countersign clients` shows them.
package struct ListedClient: Equatable, Sendable, Codable {
    /// Nil if it is not known.
    package let pid: Int32?
    package let uid: UInt32?
    /// The path of its executable; nil if it is not known.
    package let program: String?
    /// The words of `for=` that are true of it.
    package let words: [String]
    package let connections: Int
    /// The sites that it is connected to through the proxy's own TLS, sorted. Those of other tunnels are not known
    /// here.
    package let sites: [String]

    package init(
        pid: Int32?, uid: UInt32?, program: String?, words: [String], connections: Int, sites: [String]
    ) {
        self.pid = pid
        self.uid = uid
        self.program = program
        self.words = words
        self.connections = connections
        self.sites = sites
    }
}
