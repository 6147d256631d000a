// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Debian's nginx with public sites and sites that request a client certificate in the handshake.
package final class NginxOrigin: Sendable {
    /// The bearer token that `/bearer/` and the files below `/token/` require.
    package static let token = "nginx.token-1=="

    package let httpPort: Int
    package let httpsPort: Int
    /// Requires a client certificate issued by client-ca-a; TLS 1.2 only.
    package let mutual12Port: Int
    /// Requires a client certificate issued by client-ca-a; TLS 1.3 only. Stores the content of a PUT below `/stored/`.
    package let mutual13Port: Int
    /// Requires a client certificate issued by client-ca-b.
    package let mutualBPort: Int
    /// Requests a client certificate issued by client-ca-a, but does not require it.
    package let optionalPort: Int
    package let log: RequestLog
    package let root: String
    private let folder: TemporaryFolder
    private let echo: WebSocketEcho
    private let process: ChildProcess

    package init(certificate: String = "server") throws {
        folder = try TemporaryFolder("nginx")
        root = folder.file("www")
        try FileManager.default.createDirectory(atPath: "\(root)/stored", withIntermediateDirectories: true)
        echo = try WebSocketEcho()
        let pki = try TestPKI.shared
        let nginx = try Tool.path("nginx")
        let names = ["HTTP", "HTTPS", "MTLS12", "MTLS13", "MTLSB", "OPTIONAL"]
        let values = [
            "FOLDER": folder.path, "CERT": pki.certificate(certificate), "KEY": pki.key(certificate),
            "CLIENT_CA_A": pki.certificate("client-ca-a"), "CLIENT_CA_B": pki.certificate("client-ca-b"),
            "WEBSOCKET": String(echo.port), "TOKEN": Self.token,
        ]
        let folder = folder
        let started = try ConfiguredServer.start(template: "nginx.conf", values, ports: names, in: folder) { conf in
            try ChildProcess(
                nginx, ["-c", conf, "-p", folder.path, "-e", folder.file("error.log")], capture: folder.file("server"))
        }
        process = started.process
        httpPort = started.ports[0]
        httpsPort = started.ports[1]
        mutual12Port = started.ports[2]
        mutual13Port = started.ports[3]
        mutualBPort = started.ports[4]
        optionalPort = started.ports[5]
        log = RequestLog(path: folder.file("access.log"))
    }
}

/// A server configured by a template in Tests/TestOrigin/Servers.
enum ConfiguredServer {
    /// Fills in the template, starts the server and waits until all its ports accept connections. Tries three sets of
    /// ports.
    static func start(
        template: String, _ values: [String: String], ports names: [String], in folder: TemporaryFolder,
        _ launch: (String) throws -> ChildProcess
    ) throws -> (process: ChildProcess, ports: [Int]) {
        var said = ""
        for _ in 0..<3 {
            let ports = try Loopback.freePorts(names.count)
            var text = TextFile.text(Tool.server(template))
            // The ports last, because values may contain them.
            let numbers = zip(names, ports.map(String.init)).map { ($0, $1) }
            for (name, value) in values.map({ ($0.key, $0.value) }) + numbers {
                text = text.replacingOccurrences(of: "@\(name)@", with: value)
            }
            let process = try launch(try folder.write(template, text))
            let up = poll { () -> Bool? in
                if process.exitStatus != nil { return false }
                return ports.allSatisfy { Loopback.answers(port: $0) } ? true : nil
            }
            if up == true { return (process, ports) }
            process.stop()
            said = process.output + process.errorOutput + folder.text("error.log")
        }
        throw HarnessError("\(template): the server did not start: \(said)")
    }
}
