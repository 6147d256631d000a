// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A server that wants a token and never challenges well: Servers/model_server.py and Servers/package_server.py, whose
/// certificate is for *.test.localhost.
package final class TokenServer: Sendable {
    package let port: Int
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// `script` is the server's file name.
    package init(_ script: String, token: String) throws {
        folder = try TemporaryFolder("tokens")
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(), [Tool.server(script), pki.certificate("server"), pki.key("server"), token],
            capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    /// One line per request, in order.
    package var requests: [String] { Array(TextFile.lines(process.outputPath).dropFirst()) }
}

/// A GitHub Enterprise Server with the repository jdoe/tools: Servers/github_server.py.
package final class GitHubServer: Sendable {
    package let port: Int
    /// The private key in PEM of the app `app-1`, whose installation has the number 42.
    package let key: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("github")
        key = folder.file("app.pem")
        let script = """
            openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out app.pem
            openssl pkey -in app.pem -pubout -out public.pem
            git init -q -b main source
            git -C source -c user.name=a -c user.email=a@b.example commit -q --allow-empty -m 'the first commit'
            mkdir jdoe
            git clone -q --bare source jdoe/tools.git
            git -C jdoe/tools.git config http.receivepack true
            """
        let made = try Command.run(
            "/bin/sh", ["-ec", script], environment: ["HOME": folder.path], folder: folder.path, in: folder)
        guard made.status == 0 else { throw HarnessError(made.said) }
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [
                Tool.server("github_server.py"), folder.path, pki.certificate("server"), pki.key("server"),
                folder.file("public.pem"),
            ], capture: folder.file("server"))
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    package var url: String { "https://github.test.localhost:\(port)" }

    /// Such as `200 Basic /jdoe/tools.git/git-upload-pack`.
    package var requests: [String] { Array(TextFile.lines(process.outputPath).dropFirst()) }
}
