// SPDX-License-Identifier: Apache-2.0

/// Debian's glewlwyd; Servers/glewlwyd.py starts it. Its client has one redirect URI with a port, and it registers
/// neither `none` as a method of its token endpoint nor pushed requests.
package final class GlewlwydProvider: Sendable {
    package let issuer: String
    /// The only one that the provider accepts.
    package let redirect: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package static let password = "kanarie-glew-7"

    package init() throws {
        folder = try TemporaryFolder("glewlwyd")
        redirect = "http://127.0.0.1:\(try Loopback.freePorts(1)[0])/back"
        process = try ChildProcess(
            try Tool.python(), [Tool.server("glewlwyd.py"), folder.path, redirect],
            environment: ["PATH": "/usr/bin:/bin", "PASSWORD": Self.password], capture: folder.file("server"))
        issuer = "http://127.0.0.1:\(try process.line(after: "listening "))/api/oidc"
    }

    /// The provider's output, for messages.
    package var said: String { process.errorOutput }
}
