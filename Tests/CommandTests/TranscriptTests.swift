// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The commands as a user sees them: runs each file in Transcripts with sh and the built executable in a new home.
@Suite(.waiting) struct TranscriptTests {
    /// The prefix of every secret in the transcripts.
    private static let canary = "canary"

    @Test(arguments: Transcript.all)
    func commandsMatchTheTranscript(_ transcript: Transcript) throws {
        let sandbox = try Sandbox()
        #expect(!transcript.steps.isEmpty)
        for step in transcript.steps {
            let result = try sandbox.sh(step.command, input: step.input)
            let said = "\(transcript.name).txt:\(step.line): \(step.command)\n\(result.said)"
            let isAsWritten =
                Transcript.matches(step.output[...], lines(of: result.output, sandbox)[...])
                && Transcript.matches(step.error[...], lines(of: result.error, sandbox)[...])
                && result.status == step.status
            #expect(isAsWritten, "\(said)")
            #expect(!result.said.contains(Self.canary), "a secret is shown: \(said)")
        }
        for file in try secretsInClear(sandbox) { Issue.record("a secret is in \(file)") }
    }

    private func lines(of text: String, _ sandbox: Sandbox) -> [String] {
        var lines = text.replacingOccurrences(of: sandbox.folder.path, with: "{folder}")
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        while lines.last == "" { lines.removeLast() }
        return lines
    }

    /// The files in the home that contain the word in one of the encodings used for secrets.
    private func secretsInClear(_ sandbox: Sandbox) throws -> [String] {
        let word = Array(Self.canary.utf8)
        // The first eight characters of the Base64 encoding of "canary".
        let base64 = Array(Data(word).base64EncodedString().utf8)
        let forms: [[UInt8]] = [
            word, word.flatMap { [$0, 0] }, base64, Array(word.map { String(format: "%02x", $0) }.joined().utf8),
            Array(word.map { String(format: "%%%02x", $0) }.joined().utf8),
        ]
        var files: [String] = []
        for case let name as String in FileManager.default.enumerator(atPath: sandbox.home) ?? .init() {
            let bytes = Data(TextFile.bytes("\(sandbox.home)/\(name)"))
            if forms.contains(where: { bytes.range(of: Data($0)) != nil }) { files.append(name) }
        }
        return files
    }
}
