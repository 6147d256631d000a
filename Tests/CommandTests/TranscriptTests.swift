// SPDX-License-Identifier: Apache-2.0

import Foundation
import CountersignTestOrigin
import Testing

/// Every command as its user sees it: the files of Transcripts, run with sh over the built executable in a home of their own.
struct TranscriptTests {
    /// Begins every secret of the transcripts.
    private static let canary = "canary"

    @Test(arguments: Transcript.all)
    func commandsSayWhatTheTranscriptSays(_ transcript: Transcript) throws {
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

    /// The files of the home that hold the word in one of the ways that secrets are written in.
    private func secretsInClear(_ sandbox: Sandbox) throws -> [String] {
        let word = Array(Self.canary.utf8)
        // Eight characters of the Base64 of "canary", as it stands at the beginning of a secret.
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
