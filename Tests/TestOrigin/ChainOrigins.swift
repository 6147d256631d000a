// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Debian's nginx with many certificate chains, each on its own port. `/open` is public and `/secret` requires Basic.
/// The server requests a client certificate issued by client-ca-a, but does not require it.
package final class ChainOrigins: Sendable {
    /// A chain as a server sends it.
    package struct Chain: Sendable {
        package let name: String
        /// PEM files: the chain, leaf first, and the leaf's key.
        package let certificate: String
        package let key: String
        /// A file with an OCSP response in DER, which the server staples.
        package let staple: String?

        package init(_ name: String, certificate: String, key: String, staple: String? = nil) {
            self.name = name
            self.certificate = certificate
            self.key = key
            self.staple = staple
        }
    }

    package static let openText = "for everybody\n"
    package static let secretText = "for who may\n"
    /// The `WWW-Authenticate` value of a 401 from `/secret`.
    package static let challenge = "Basic realm=\"Chains\""

    private let ports: [String: Int]
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ chains: [Chain], user: String, password: String) throws {
        folder = try TemporaryFolder("chains")
        let folder = folder
        try folder.write("www/secret", Self.secretText)
        try folder.write("users", "\(user):{PLAIN}\(password)\n")
        let sites = chains.enumerated().map { index, chain in
            """
                server {
                    listen 127.0.0.1:@PORT\(index)@ ssl;
                    access_log \(folder.file("access"))-@PORT\(index)@.log object;
                    ssl_certificate \(chain.certificate);
                    ssl_certificate_key \(chain.key);
                    \(chain.staple.map { "ssl_stapling on; ssl_stapling_file \($0);" } ?? "ssl_stapling off;")
                    location = /open { return 200 "\(Self.openText.dropLast())\\n"; }
                }
            """
        }
        let values = [
            "FOLDER": folder.path, "CLIENT_CA": try TestPKI.shared.certificate("client-ca-a"),
            "SITES": sites.joined(separator: "\n"),
        ]
        let nginx = try Tool.path("nginx")
        let names = chains.indices.map { "PORT\($0)" }
        let started = try ConfiguredServer.start(template: "chains.conf", values, ports: names, in: folder) { conf in
            try ChildProcess(
                nginx, ["-c", conf, "-p", folder.path, "-e", folder.file("error.log")], capture: folder.file("server"))
        }
        process = started.process
        ports = Dictionary(uniqueKeysWithValues: zip(chains.map(\.name), started.ports))
    }

    /// The port that serves the chain with this name.
    package func port(_ name: String) throws -> Int {
        guard let port = ports[name] else { throw HarnessError("no chain is named \"\(name)\"") }
        return port
    }

    /// The requests to one chain's port with this query. Incomplete requests have an empty query.
    package func logged(_ name: String, query: String) throws -> [LoggedRequest] {
        let log = RequestLog(path: folder.file("access-\(try port(name)).log"))
        return log.requests.filter { ($0.path?.split(separator: "?").dropFirst().last ?? "") == query }
    }
}
