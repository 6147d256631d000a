// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An MCP server that requires authorization, with its own provider: Servers/mcp_server.py, which is PyPI's `mcp`.
package final class MCPServer: Sendable {
    package let port: Int
    private let log: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("mcp")
        log = folder.file("requests")
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(), [Tool.server("mcp_server.py"), log, pki.certificate("server"), pki.key("server")],
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    /// That of the server and of its provider.
    package var origin: String { "https://mcp.test.localhost:\(port)" }

    package struct Request: Sendable, Decodable {
        package let method: String
        package let path: String
        package let status: Int
        /// Whether it had a token.
        package let token: Bool
    }

    /// Those so far.
    package var requests: [Request] {
        TextFile.lines(log).compactMap { try? JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }
}
