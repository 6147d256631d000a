// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Where secrets are in the server's memory, as a core dump would show it: while the vault is open, at most two copies
/// of a password and three of a private key, in locked memory; after `vault lock`, none.
@Suite(.waiting) struct MemoryTests {
    enum Scheme: String, CaseIterable {
        case basic, basicOverHTTP, ntlm, negotiate, certificate
    }

    @Test(arguments: Scheme.allCases) func aLockLeavesNoSecretInMemory(_ scheme: Scheme) throws {
        let user = try Countersign()
        let (urls, origin) = try sites(of: scheme, user)
        let proxy = try user.serve(environment: Self.resolvingAtOnce)
        for url in urls + urls {
            let seen = try proxy.get(url)
            #expect(seen.status == 200, "\(seen.said)")
        }
        let marks = try marks(of: scheme)
        // A policy that was replaced a moment ago is let go within a second. Of a private key, OpenSSL has two copies
        // beside the vault's.
        let limit = scheme == .certificate ? 3 : 2
        let open = try poll {
            let found = try search(proxy, marks)
            return (1...limit).contains(found.count) ? found : nil
        }
        let found = try open ?? search(proxy, marks)
        #expect(open != nil, "\(found)")
        #expect(found.allSatisfy { $0.place == "locked" }, "\(found)")

        #expect(try user.succeed("vault", "lock") == "vault locked\n")
        // An idle connection notices within a second.
        let isClean = try poll { try search(proxy, marks).isEmpty ? true : nil }
        let left = try search(proxy, marks)
        #expect(isClean == true, "\(left)")
        #expect(left == [])
        withExtendedLifetime(origin) {}
    }

    /// A command hands the password and the key over to the server that has the vault open.
    @Test func secretsFromTheControlSocketAreInLockedMemoryOnly() throws {
        let (passphrase, password) = ("memory-canary-passphrase", "memory-canary-password")
        let user = try Countersign()
        try user.enroll()
        // The CA, which needs the vault.
        _ = try user.exportedAnchor()
        try user.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "\(passphrase)\n")
        let proxy = try user.serve(environment: Self.resolvingAtOnce)
        try user.succeed("vault", "unlock", "--password-stdin", input: "\(passphrase)\n")
        try user.succeed("credential", "set", "work", "--user", "other", "--password-stdin", input: "\(password)\n")
        try user.importIdentity("laptop")
        #expect(try user.succeed("certificate", "list").contains("laptop"))
        let scalar = try privateKey("laptop")
        let marks = [
            ("passphrase", Array(passphrase.utf8)), ("password", Array(password.utf8)), ("key", scalar),
            ("reversed-key", scalar.reversed()),
        ]
        let open = try poll {
            let found = try search(proxy, marks)
            return found.allSatisfy { $0.place == "locked" && $0.name != "passphrase" } ? found : nil
        }
        let found = try open ?? search(proxy, marks)
        #expect(open != nil, "\(found)")
        #expect(Set(found.map(\.name)).isSuperset(of: ["password"]), "\(found)")

        try user.succeed("vault", "lock")
        let isClean = try poll { try search(proxy, marks).isEmpty ? true : nil }
        let left = try search(proxy, marks)
        #expect(isClean == true, "\(left)")
    }

    /// The values reach the proxy in a response, and leave it in others.
    @Test func aLockLeavesNoSessionCookieInMemory() throws {
        let bench = try SharedSessionTests.Bench(environment: Self.resolvingAtOnce)
        _ = try bench.enrollTwice()
        let marks = [("cookie", Array("canary-session".utf8))]
        for _ in 0..<5 { #expect(try bench.who() == "jdoe") }
        #expect(try search(bench.proxy, marks).contains { $0.place == "locked" })
        try bench.user.succeed("vault", "lock")
        let isClean = try poll { try search(bench.proxy, marks).isEmpty ? true : nil }
        let left = try search(bench.proxy, marks)
        #expect(isClean == true, "\(left)")
    }

    /// The dynamic linker resolves a function in its first call, and meanwhile stores the vector registers on the
    /// stack: with the secret that the last memcpy left there.
    @Test func theExecutableResolvesItsFunctionsBeforeItReadsASecret() throws {
        let section = try Command.run(
            Tool.path("readelf"), ["-d", Countersign.executable], in: TemporaryFolder())
        #expect(section.output.contains("BIND_NOW"), "\(section.said)")
    }

    /// Swift's libraries, which an installed executable contains, are loaded dynamically in a debug build.
    private static let resolvingAtOnce = ["LD_BIND_NOW": "1"]

    /// Three sites that authenticate by `scheme`, and the object that runs them.
    private func sites(of scheme: Scheme, _ user: Countersign) throws -> ([String], AnyObject) {
        try user.enroll()
        if scheme == .certificate {
            try user.importIdentity("laptop")
            let nginx = try Origins.shared.nginx
            let urls = ["a", "b", "c"].map { "https://\($0).test.localhost:\(nginx.mutual13Port)" }
            for url in urls { try user.allow(url) }
            return (urls.map { $0 + "/who" }, nginx)
        }
        let mode: ChallengingOrigin.Mode =
            switch scheme {
            case .basic, .basicOverHTTP, .certificate: .basic
            case .ntlm: .ntlm
            case .negotiate: .negotiate
            }
        let isPlain = scheme == .basicOverHTTP
        let origin = try ChallengingOrigin.acme(mode, certificate: isPlain ? nil : "server")
        let urls = ["a", "b", "c"].map { "http\(isPlain ? "" : "s")://\($0).test.localhost:\(origin.port)" }
        let options = mode == .basic ? (isPlain ? "answer=basic plaintext=yes" : "") : "domain=ACME"
        for url in urls { try user.allow("\(url) \(options)") }
        return (urls.map { $0 + "/echo" }, origin)
    }

    private struct Hit: Equatable {
        let name: String
        let place: String
        let mapping: String
    }

    private func search(_ proxy: RunningProxy, _ marks: [(String, [UInt8])]) throws -> [Hit] {
        let input = marks.map { "\($0) \(Hex.text($1))\n" }.joined()
        let script = [Tool.client("memory.py"), "\(proxy.process.pid)"]
        let isRoot = geteuid() == 0
        let done = try Command.run(
            isRoot ? try Tool.python() : try Tool.path("sudo"), isRoot ? script : ["-n", try Tool.python()] + script,
            input: input, in: TemporaryFolder())
        guard done.status == 0 else { throw HarnessError("memory.py: \(done.said)") }
        return done.output.split(separator: "\n").map { line in
            let words = line.split(separator: " ", maxSplits: 2).map(String.init)
            return Hit(name: words[0], place: words[1], mapping: words[2])
        }
    }

    /// The secrets that must not remain: the password and its equivalents, or the private key.
    private func marks(of scheme: Scheme) throws -> [(String, [UInt8])] {
        if scheme == .certificate {
            let scalar = try privateKey("laptop")
            return [("key", scalar), ("reversed-key", scalar.reversed())]
        }
        let script = """
            import sys
            from spnego._ntlm_raw.crypto import ntowfv1, ntowfv2
            print(ntowfv1(sys.argv[1]).hex()); print(ntowfv2("jdoe", ntowfv1(sys.argv[1]), "ACME").hex())
            """
        let hashes = try Command.run(Tool.python(), ["-c", script, Countersign.password], in: TemporaryFolder())
        #expect(hashes.status == 0, "\(hashes.said)")
        let password = Countersign.password
        let pair = Data("\(Countersign.user):\(password)".utf8)
        return [
            ("password", Array(password.utf8)),
            ("utf16", password.utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }),
            ("base64", Array(pair.base64EncodedString().utf8)),
        ]
            + zip(["nt-hash", "ntowfv2"], hashes.output.split(separator: "\n")).map { ($0, Hex.bytes($1)) }
    }

    /// The secret number of a key: the private exponent, or the scalar of an elliptic curve.
    private func privateKey(_ name: String) throws -> [UInt8] {
        let text = try Command.run(
            Tool.path("openssl"), ["pkey", "-in", TestPKI.shared.key(name), "-noout", "-text"], in: TemporaryFolder())
        let lines = text.output.split(separator: "\n")
        let start = try #require(lines.firstIndex { $0.hasPrefix("priv:") || $0.hasPrefix("privateExponent:") })
        let digits = lines[(start + 1)...].prefix { $0.hasPrefix(" ") }.joined().filter(\.isHexDigit)
        let bytes = Hex.bytes(digits)
        return Array(bytes.drop { $0 == 0 })
    }

    private enum Hex {
        static func text(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

        static func bytes(_ digits: some StringProtocol) -> [UInt8] {
            let digits = Array(digits)
            return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(digits[$0...($0 + 1)]), radix: 16)
            }
        }
    }
}
