// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Foundation
import Testing

@testable import CountersignAudit

/// What other programs make of an audit, by its documentation.
@Suite struct AuditToolsTests {
    private func run(_ script: String, in folder: AuditFolder) throws -> (status: Int32, output: String) {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-euc", script]
        process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }

    /// The script in `Documentation/Behaviour/Audit.md`.
    private static func documentedScript() throws -> String {
        let page = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
            .appending(path: "../../../Documentation/Behaviour/Audit.md").standardized
        let text = try String(contentsOf: page, encoding: .utf8)
        let start = try #require(text.firstRange(of: "```sh\n")?.upperBound)
        let end = try #require(text[start...].firstRange(of: "```")?.lowerBound)
        return String(text[start..<end])
    }

    @Test func theDocumentedScriptVerifiesAnAudit() throws {
        let folder = try AuditFolder()
        let lines = try AuditFixture.lines()
        try folder.write(Array(lines.joined()), "audit.jsonl")
        try folder.write(Array(AuditFixture.key.publicKey.pem.utf8), "audit.pem")
        let script = try Self.documentedScript()
        let intact = try run(script, in: folder)
        #expect(intact.status == 0, "\(intact.output)")
        #expect(intact.output.components(separatedBy: "Verified OK").count == 4)

        var changed = lines
        changed[6] = Array(String(decoding: lines[6], as: UTF8.self).replacing("default", with: "another").utf8)
        try folder.write(Array(changed.joined()), "audit.jsonl")
        #expect(try run(script, in: folder) == (1, "line 7: another hash\n"))

        AuditVerifierTests.Tampering.rechain(&changed, from: 6)
        try folder.write(Array(changed.joined()), "audit.jsonl")
        let replaced = try run(script, in: folder)
        #expect(replaced.status == 1 && replaced.output.contains("Verification failure"), "\(replaced.output)")
    }

    /// Members, hashes, the chain and the signatures as another JSON parser and another library see them.
    @Test(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "needs python3"))
    func pythonReadsTheSameRecords() throws {
        let folder = try AuditFolder()
        do {
            let file = try folder.open()
            var use = AuditFixture.use(1)
            use.program = "/opt/\u{202E}a \"b\"\\\n\u{7}é\u{1F511}"
            file.append(use)
        }
        let script = """
            import hashlib, json
            previous = '0' * 64
            for line in open('audit', 'rb').read().split(b'\\n')[:-1]:
                record = json.loads(line)
                assert hashlib.sha256(line[:-75] + b'}').hexdigest() == record['hash']
                assert record['previous'] == previous
                previous = record['hash']
                if record['kind'] == 'use': print(ascii(record['program']))
            """
        let result = try run("cat > x.py <<'END'\n\(script)\nEND\npython3 x.py", in: folder)
        #expect(result == (0, "'/opt/\\u202ea \"b\"\\\\\\n\\x07\\xe9\\U0001f511'\n"))
    }
}
