// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A marked password may appear at the origin and in the sealed vault, and nowhere else in any encoding.
@Suite(.waiting) struct SecrecyTests {
    @Test func noSecretAppearsInFilesOrOutput() throws {
        let user = try Countersign()
        let script = """
            import sys
            from spnego._ntlm_raw.crypto import ntowfv1, ntowfv2
            print(ntowfv1(sys.argv[1]).hex()); print(ntowfv2("jdoe", ntowfv1(sys.argv[1]), "ACME").hex())
            """
        let hashes = try Command.run(Tool.python(), ["-c", script, Countersign.password], in: TemporaryFolder())
        #expect(hashes.status == 0, "\(hashes.said)")
        try exercise(user)
        let marks = try marks(hashes.output)
        #expect(marks.count == 24)
        let said = user.folder.path
        var seen = 0
        let files = try #require(FileManager.default.enumerator(atPath: said))
        for case let name as String in files where !name.hasSuffix(".in") {
            let bytes = Data(TextFile.bytes("\(said)/\(name)"))
            seen += bytes.isEmpty ? 0 : 1
            for (what, mark) in marks where bytes.range(of: mark) != nil { Issue.record("\(what) is in \(name)") }
        }
        #expect(seen > 20, "\(seen) files were looked at")
    }

    /// All kinds of answers, rejections and errors that involve a secret.
    private func exercise(_ user: Countersign) throws {
        let origins = [
            try ChallengingOrigin.acme(.basic), try ChallengingOrigin.acme(.ntlm),
            try ChallengingOrigin.acme(.negotiate),
        ]
        try user.enroll()
        try user.enroll(password: Countersign.wrongPassword, name: "wrong")
        try user.importIdentity("laptop")
        for (index, origin) in origins.enumerated() {
            let domain = index == 0 ? "" : " domain=ACME"
            try user.allow(
                "https://right.test.localhost:\(origin.port)\(domain)",
                "https://wrong.test.localhost:\(origin.port) credential=wrong\(domain)")
        }
        let proxy = try user.serve()
        for origin in origins {
            #expect(try proxy.get("https://right.test.localhost:\(origin.port)/echo").status == 200)
            let wrong = try proxy.get("https://wrong.test.localhost:\(origin.port)/echo")
            #expect(wrong.status == 401)
            try user.folder.write("seen-\(origin.port)", wrong.said + wrong.text + "\(wrong.fields)")
            _ = try proxy.get("https://right.test.localhost:\(origin.port)/fault/close-on-authenticate/x")
            origin.stop()
            _ = try proxy.get("https://right.test.localhost:\(origin.port)/echo")
            _ = try user.run("explain", "https://right.test.localhost:\(origin.port)/")
        }
        try TextFile.bytes("/proc/\(proxy.process.pid)/environ").withUnsafeBytes {
            _ = try user.folder.write("environment", Array($0) + TextFile.bytes("/proc/\(proxy.process.pid)/cmdline"))
        }
        let wrongFile = try TestPKI.shared.pkcs12("badge")
        _ = try user.run("certificate", "import", wrongFile, "--password-stdin", input: Countersign.wrongPassword)
        for arguments in [
            ["credential", "list", "--json"], ["certificate", "list"], ["vault", "status"], ["exec", "--", "env"],
        ] {
            _ = try user.run(arguments)
        }
        proxy.process.stop()
    }

    /// The encodings of the secrets, with their names.
    private func marks(_ hashes: String) throws -> [(String, Data)] {
        var marks: [(String, Data)] = []
        let secrets = [Countersign.password, Countersign.wrongPassword, try TestPKI.shared.password]
        for secret in secrets {
            let wide = Data(secret.utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] })
            let plain = Data(secret.utf8)
            let pair = Data("\(Countersign.user):\(secret)".utf8)
            marks.append(("a password", plain))
            marks.append(("a password in UTF-16", wide))
            marks.append(("a password in base64", Data(plain.base64EncodedString().prefix(16).utf8)))
            marks.append(("a user:password in base64", Data(pair.base64EncodedString().prefix(20).utf8)))
            marks.append(("a password in hex", Data(plain.map { String(format: "%02x", $0) }.joined().utf8)))
            marks.append(("a password backwards", Data(plain.reversed())))
        }
        for hash in hashes.split(separator: "\n") {
            let digits = Array(hash)
            let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
                UInt8(String(digits[$0...($0 + 1)]), radix: 16)
            }
            marks.append(("a hash in hex", Data(hash.utf8)))
            marks.append(("a hash", Data(bytes)))
        }
        marks.append(("an AuthenticateMessage", Data("TlRMTVNTUAADAAAA".utf8)))
        marks.append(("an AuthenticateMessage in bytes", Data("NTLMSSP\0\u{3}\0\0\0".utf8)))
        return marks
    }

    @Test func searchFindsAPlantedSecret() throws {
        let scratch = try TemporaryFolder()
        let file = try scratch.write("planted", "x \(Countersign.password) y")
        let found = try marks("").filter { Data(TextFile.bytes(file)).range(of: $0.1) != nil }.map(\.0)
        #expect(found == ["a password"])
    }
}
