// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// Certificates: the cost of the first connection to a site.
enum CertificateBenchmarks {
    static let groups = [
        BenchmarkGroup(prefix: "leaf", make: leaf), BenchmarkGroup(prefix: "chain", make: chain),
    ]

    /// 2026-01-01 in seconds since 1970, when all certificates used here are valid.
    private static let now: Int64 = 1_767_225_600

    /// Mints a leaf for a key that all leaves share.
    private static func leaf() throws -> [Benchmark] {
        let hosts = ["intranet.acme.example", "git.acme.example", "*.apps.acme.example"]
        let authority = try InterceptionAuthority.create(permitting: hosts, at: now)
        let key = try PrivateKey.generateP256()
        return [
            Benchmark("leaf-mint", .atMost) {
                keep(try authority.mintLeaf(host: "intranet.acme.example", key: key, at: now))
            }
        ]
    }

    /// Parses and verifies a leaf and its intermediate against their root; all keys are P-256.
    private static func chain() throws -> [Benchmark] {
        let sent = try Certificate.readPEM(try Checkout.read("Certs/dev/pki/origin-intermediate-leaf.pem"))
        let roots = try Certificate.readPEM(try Checkout.read("Certs/dev/pki/origin-root.pem"))
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: roots))
        let trust = verifier.evaluate(chain: sent, host: "localhost", at: now)
        guard sent.count == 2, trust.isTrusted else { throw SetUpFailure("a chain of \(sent.count): \(trust)") }
        let ders = sent.map(\.der)
        return [
            Benchmark("chain-parse", .atMost) {
                for der in ders { keep(try Certificate(der: der)) }
            },
            Benchmark("chain-verify", .atMost) {
                keep(verifier.evaluate(chain: sent, host: "localhost", at: now))
            },
        ]
    }
}
