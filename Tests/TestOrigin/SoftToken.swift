// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A PKCS#11 token of softhsm2 in a temporary folder.
package final class SoftToken: Sendable {
    package static let label = "work"
    package static let pin = "canary-pin-4711"
    /// The path of Debian's softhsm2.
    package static let modulePath = "/usr/lib/softhsm/libsofthsm2.so"

    /// A second token for tests with wrong PINs, because the first may be logged in.
    package static let spareLabel = "spare"

    /// The token for code in this process. Its configuration is in this process's environment, which the module reads
    /// only once. It holds `client-a` (ID a1), `client-b` (ID b1) and the key `fresh` (ID f1), which has no
    /// certificate; the spare token holds `client-a`. The module may miss keys that another process makes later.
    package static let shared = Result {
        let token = try SoftToken()
        try token.add(spareLabel)
        try token.take("client-a", id: "a1")
        try token.take("client-b", id: "b1")
        try token.take("client-a", id: "a1", into: spareLabel)
        try token.generate("fresh", id: "f1", kind: "EC:prime256v1")
        setenv("SOFTHSM2_CONF", token.configuration, 1)
        return token
    }

    private let folder: TemporaryFolder
    private let configuration: String

    package init() throws {
        folder = try TemporaryFolder("token")
        try FileManager.default.createDirectory(atPath: folder.file("tokens"), withIntermediateDirectories: true)
        configuration = try folder.write(
            "softhsm2.conf",
            "directories.tokendir = \(folder.file("tokens"))\nobjectstore.backend = file\nlog.level = ERROR\n")
        try add(Self.label)
    }

    private func add(_ label: String) throws {
        try run(
            "softhsm2-util", "--init-token", "--free", "--label", label, "--pin", Self.pin, "--so-pin", "12345678")
    }

    /// The environment in which a program finds the token.
    package var environment: [String: String] { ["SOFTHSM2_CONF": configuration] }

    /// The URI of the object with this name.
    package static func uri(_ object: String, in token: String = label) -> String {
        "pkcs11:token=\(token);object=\(object)?module-path=\(modulePath)"
    }

    /// Imports a key and its certificate from Certs/dev/pki under their name. `id` is hexadecimal.
    package func take(_ name: String, id: String, into token: String = label) throws {
        try take(
            name, id: id, key: Tool.fixture("\(name).key.pem"), certificate: Tool.fixture("\(name).pem"), into: token)
    }

    /// Imports a key and its certificate from PEM files as `name`.
    package func take(
        _ name: String, id: String, key: String, certificate: String, into token: String = label
    ) throws {
        let (plain, der) = (folder.file("\(name).key"), folder.file("\(name).der"))
        try run("openssl", "pkcs8", "-topk8", "-nocrypt", "-in", key, "-out", plain)
        try run(
            "softhsm2-util", "--import", plain, "--token", token, "--label", name, "--id", id, "--pin", Self.pin)
        try run("openssl", "x509", "-in", certificate, "-outform", "DER", "-out", der)
        try run(
            "pkcs11-tool", "--module", Self.modulePath, "--token-label", token, "--login", "--pin", Self.pin,
            "--write-object", der, "--type", "cert", "--label", name, "--id", id)
    }

    /// Generates a key pair as `name`; `kind` is `EC:prime256v1`, `rsa:2048` or another of pkcs11-tool's.
    package func generate(_ name: String, id: String, kind: String) throws {
        try run(
            "pkcs11-tool", "--module", Self.modulePath, "--token-label", Self.label, "--login", "--pin", Self.pin,
            "--keypairgen", "--key-type", kind, "--label", name, "--id", id)
    }

    private func run(_ program: String, _ arguments: String...) throws {
        let done = try Command.run(try Tool.path(program), arguments, environment: environment, in: folder)
        guard done.status == 0 else { throw HarnessError("\(program): \(done.said)") }
    }
}
