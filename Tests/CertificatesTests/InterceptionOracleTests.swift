// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignCertificates

/// Verifies issued chains with other implementations: `openssl verify -x509_strict`, GnuTLS' certtool, Python's ssl.
struct InterceptionOracleTests {
    private let now = TestPKI.now

    /// The files of one issued chain.
    private struct Minted {
        let folder: TemporaryFolder
        let root: String
        let issuing: String
        let leaf: String
        let bundle: String
    }

    private func mint(_ host: String, permitting hosts: [String], at time: Int64) throws -> Minted {
        let authority = try InterceptionAuthority.create(permitting: hosts, at: time)
        return try mint(host, authority, under: authority.issuing[0], at: time)
    }

    private func mint(
        _ host: String, _ authority: InterceptionAuthority, under issuer: Certificate, at time: Int64
    ) throws -> Minted {
        let key = try PrivateKey.generateP256()
        let leaf = try authority.leaf(host: host, key: key, by: issuer, at: time)
        let folder = try TemporaryFolder()
        return Minted(
            folder: folder, root: try folder.write("root.pem", authority.root.pem),
            issuing: try folder.write("issuing.pem", issuer.pem),
            leaf: try folder.write("leaf.pem", leaf.pem),
            bundle: try folder.write("bundle.pem", leaf.pem + issuer.pem + pem(key)))
    }

    private func pem(_ key: PrivateKey) throws -> String {
        let text = try key.pkcs8.withBytes { Base64.encode(Array($0)) }
        return "-----BEGIN PRIVATE KEY-----\n\(text)\n-----END PRIVATE KEY-----\n"
    }

    private static let permitted = ["a.example", "*.corp.example", "10.1.2.3"]
    private static let namesOnly = ["a.example", "corp.example"]
    private static let addressesOnly = ["10.1.2.3", "fd00::1"]

    static let accepted: [(String, [String])] = [
        ("a.example", permitted), ("www.corp.example", permitted), ("10.1.2.3", permitted), ("a.example", namesOnly),
        ("10.1.2.3", addressesOnly), ("fd00::1", addressesOnly),
    ]
    static let refused: [(String, [String])] = [
        ("bank.example", permitted), ("ba.example", permitted), ("10.1.2.4", permitted), ("::1", permitted),
        ("10.1.2.3", namesOnly), ("::1", namesOnly), ("a.example", addressesOnly), ("fd00::2", addressesOnly),
        ("bank.example", []), ("10.1.2.3", []),
    ]

    private func openSSLAccepts(_ minted: Minted, _ host: String) throws -> (accepted: Bool, output: String) {
        let option = IPAddress(text: host) == nil ? "-verify_hostname" : "-verify_ip"
        let result = try run(
            "openssl",
            [
                "verify", "-x509_strict", "-purpose", "sslserver", "-attime", "\(now)", "-no-CApath", "-no-CAstore",
                "-CAfile", minted.root, "-untrusted", minted.issuing, option, host, minted.leaf,
            ])
        return (result.status == 0, result.output)
    }

    @Test(arguments: accepted) func openSSLAcceptsWhatIsPermitted(host: String, permitted: [String]) throws {
        let (accepted, output) = try openSSLAccepts(mint(host, permitting: permitted, at: now), host)
        #expect(accepted, "\(output)")
    }

    @Test(arguments: refused) func openSSLRefusesWhatIsNotPermitted(host: String, permitted: [String]) throws {
        let (accepted, output) = try openSSLAccepts(mint(host, permitting: permitted, at: now), host)
        #expect(!accepted)
        #expect(output.contains("subtree violation"), "\(output)")
    }

    private func gnuTLSAccepts(_ minted: Minted, _ host: String) throws -> (accepted: Bool, output: String) {
        let chain = try minted.folder.bytes("leaf.pem") + minted.folder.bytes("issuing.pem")
        try minted.folder.write("chain.pem", String(decoding: chain, as: UTF8.self))
        let result = try run(
            "certtool",
            [
                "--verify", "--verify-profile", "medium", "--verify-purpose", "1.3.6.1.5.5.7.3.1",
                "--load-ca-certificate", minted.root, "--infile", minted.folder.path("chain.pem"),
            ] + (IPAddress(text: host) == nil ? ["--verify-hostname", host] : []))
        return (result.status == 0 && result.output.contains("The certificate is trusted"), result.output)
    }

    @Test(arguments: accepted) func gnuTLSAcceptsWhatIsPermitted(host: String, permitted: [String]) throws {
        let (accepted, output) = try gnuTLSAccepts(mint(host, permitting: permitted, at: TestPKI.today), host)
        #expect(accepted, "\(output)")
    }

    @Test(arguments: refused) func gnuTLSRefusesWhatIsNot(host: String, permitted: [String]) throws {
        let (accepted, output) = try gnuTLSAccepts(mint(host, permitting: permitted, at: TestPKI.today), host)
        #expect(!accepted)
        #expect(output.contains("violates the signer's constraints"), "\(output)")
    }

    /// A handshake in memory: prints "ok" or the client's error.
    private static let python = """
        import ssl, sys
        root, bundle, host = sys.argv[1:]
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); server.load_cert_chain(bundle)
        client = ssl.create_default_context(cafile=root); client.verify_flags |= ssl.VERIFY_X509_STRICT
        a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = [client.wrap_bio(a, b, server_hostname=host), server.wrap_bio(b, a, server_side=True)]
        done = set()
        while len(done) < 2:
            for side in sides:
                if side in done: continue
                try: side.do_handshake(); done.add(side)
                except ssl.SSLWantReadError: pass
                except ssl.SSLCertVerificationError as fault: print(fault.verify_message); sys.exit()
        print("ok")
        """

    @Test(arguments: [
        ("a.example", "ok"), ("10.1.2.3", "ok"), ("bank.example", "permitted subtree violation"),
        ("10.1.2.4", "permitted subtree violation"),
    ])
    func pythonAgrees(host: String, expected: String) throws {
        let minted = try mint(host, permitting: Self.permitted, at: TestPKI.today)
        let arguments = ["-c", Self.python, minted.root, minted.bundle, host]
        #expect(try run("/usr/bin/python3", arguments).output.contains(expected))
    }

    // MARK: Ten thousand hosts

    private static let many =
        (0..<10_000).map { "host\($0).dept\($0 % 97).corp.example" } + ["*.wild.example", "10.1.2.3", "fd00::1"]

    @Test(arguments: [
        "host0.dept0.corp.example", "host5000.dept53.corp.example", "host9999.dept8.corp.example", "x.wild.example",
        "10.1.2.3", "fd00::1",
    ])
    func oneOfTenThousandIsAcceptedUnderItsOwnCertificate(host: String) throws {
        for time in [now, TestPKI.today] {
            let authority = try InterceptionAuthority.create(permitting: Self.many, at: time)
            let issuer = try authority.mintLeaf(host: host, key: authority.issuingKey, at: time)[1]
            let minted = try mint(host, authority, under: issuer, at: time)
            if time == now {
                let (accepted, output) = try openSSLAccepts(minted, host)
                #expect(accepted, "\(output)")
            } else {
                let (accepted, output) = try gnuTLSAccepts(minted, host)
                #expect(accepted, "\(output)")
                #expect(
                    try run("/usr/bin/python3", ["-c", Self.python, minted.root, minted.bundle, host]).output
                        .contains("ok"))
            }
        }
    }

    /// A name that is not listed, a listed name under every other certificate, and an address.
    @Test(arguments: ["bank.example", "host5000.dept53.corp.example", "10.1.2.4"])
    func anotherHostIsRefusedUnderEveryCertificate(host: String) throws {
        for time in [now, TestPKI.today] {
            let authority = try InterceptionAuthority.create(permitting: Self.many, at: time)
            let own = try? authority.mintLeaf(host: host, key: authority.issuingKey, at: time)[1]
            let others = authority.issuing.filter { $0 != own }
            #expect(others.count == authority.issuing.count - (authority.permits(host) ? 1 : 0) && others.count > 30)
            for issuer in others {
                let minted = try mint(host, authority, under: issuer, at: time)
                if time == now {
                    let (accepted, output) = try openSSLAccepts(minted, host)
                    #expect(!accepted && output.contains("subtree violation"), "\(output)")
                } else {
                    let (accepted, output) = try gnuTLSAccepts(minted, host)
                    #expect(!accepted && output.contains("violates the signer's constraints"), "\(output)")
                }
            }
        }
    }
}
