// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin

/// An independent TLS client, run by a small program in Tests/TestOrigin/Clients.
enum ForeignVerifier: String, CaseIterable, Sendable {
    case openssl, gnutls, nss, go, node, java

    /// Its error message for a name outside the issuer's constraints.
    var diagnostic: String {
        switch self {
        case .openssl, .node: "subtree violation"
        case .gnutls: "violates the signer's constraints"
        case .nss: "SEC_ERROR_CERT_NOT_IN_NAME_SPACE"
        case .go: "is not authorized to sign for this name"
        case .java: "name constraints check failed"
        }
    }

    /// Handshakes with 127.0.0.1 for each `host:port`, trusting only `root`. Returns `accepted` or the error for each.
    func verdicts(_ places: [String], root: String) throws -> [String] {
        let scratch = try TemporaryFolder("verifier")
        let command: [String] =
            switch self {
            case .openssl, .gnutls, .nss: [try Tool.path("sh"), Tool.client("verify.sh"), rawValue]
            case .go: [try Tool.path("go"), "run", Tool.client("verify.go")]
            case .node: [try Tool.path("node"), Tool.client("verify.js")]
            case .java: [try Tool.path("java"), Tool.client("Verify.java")]
            }
        let tools: [ForeignVerifier: [String]] = [
            .openssl: ["openssl"], .gnutls: ["gnutls-cli"], .nss: ["tstclnt", "certutil"],
        ]
        for tool in tools[self] ?? [] { _ = try Tool.path(tool) }
        let done = try Command.run(
            command[0], command.dropFirst() + [root] + places,
            environment: ["HOME": scratch.path, "GO111MODULE": "off"], folder: scratch.path, in: scratch)
        let lines = done.output.split(separator: "\n")
        guard done.status == 0, lines.count == places.count else { throw HarnessError("\(rawValue): \(done.said)") }
        return zip(places, lines).map { place, line in
            String(line.dropFirst(place.prefix { $0 != ":" }.count + 1))
        }
    }
}
