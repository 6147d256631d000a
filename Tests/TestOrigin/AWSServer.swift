// SPDX-License-Identifier: Apache-2.0

/// Servers of Amazon Web Services that verify signatures: Servers/aws_server.py, which is moto.
package final class AWSServer: Sendable {
    package let port: Int
    /// Of the only user.
    package let keys: (id: String, secret: String)
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("aws")
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [Tool.server("aws_server.py"), pki.certificate("server-localhost"), pki.key("server-localhost")],
            capture: folder.file("server"))
        let words = try process.line(after: "keys ").split(separator: " ").map(String.init)
        guard words.count == 2 else { throw HarnessError("moto has made no keys") }
        keys = (words[0], words[1])
        port = try Int(process.line(after: "listening ")) ?? 0
    }
}
