// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// The `transfer` example moves 256 MiB with AnsweringSession, in a process of its own, whose memory must not grow with
/// the content.
@Suite(.waiting) struct LibraryTransferTests {
    private static let size = 256 << 20
    /// Of a debug build, in KiB.
    private static let growth = 32 * 1024

    private let folder: TemporaryFolder
    private let origins: LibraryOrigins
    private let home: LibraryHome

    init() throws {
        folder = try TemporaryFolder("transfer")
        origins = try LibraryOrigins.shared
        home = try LibraryHome(
            "\(origins.ntlmURL) answer=ntlm domain=ACME\n\(origins.certificateURL) answer=certificate\n",
            identities: ["laptop"], anchors: [try TestPKI.shared.originAnchor])
    }

    /// Runs the example. Returns its output, and the growth of its memory.
    private func run(_ arguments: String...) async throws -> (output: String, memory: Int) {
        let program = try LibraryExampleTests.program("transfer")
        let result = try await Command.detached { [home, folder] in
            try Command.run(program, [home.path] + arguments, in: folder, seconds: 240)
        }
        try #require(result.status == 0, "\(result.said)")
        let lines = result.output.split(separator: "\n")
        let memory = lines.last.flatMap { Int($0.filter(\.isNumber)) }
        return (lines.dropLast().joined(separator: "\n"), try #require(memory, "\(result.said)"))
    }

    /// Writes a file of 256 MiB, and returns its path and its SHA-256.
    private func file() throws -> (path: String, digest: String) {
        let path = folder.file("content")
        let made = try Command.run(
            "/bin/sh", ["-c", "head -c \(Self.size) /dev/urandom > '\(path)'"], in: folder)
        try #require(made.status == 0, "\(made.said)")
        return (path, try digest(of: path))
    }

    private func digest(of path: String) throws -> String {
        String(try Command.run(Tool.path("sha256sum"), [path], in: folder).output.prefix(64))
    }

    @Test func aDownloadWithNTLMDoesNotGrowTheProcess() async throws {
        let file = folder.file("downloaded")
        let (_, memory) = try await run("download", "\(origins.ntlmURL)/bytes/\(Self.size)", file)
        #expect(memory < Self.growth)
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int == Self.size)
    }

    @Test func anUploadAndADownloadWithAClientCertificateKeepTheContent() async throws {
        let (path, sum) = try file()
        let url = "\(origins.certificateURL)/stored/transferred-\(ProcessInfo.processInfo.processIdentifier)"
        #expect(try await run("upload", path, url).memory < Self.growth)
        let file = folder.file("downloaded")
        #expect(try await run("download", url, file).memory < Self.growth)
        #expect(try digest(of: file) == sum)
    }

    /// NTLM's server asks for the content at once and challenges afterwards, so the proxy has to keep it meanwhile.
    @Test func anUploadWithNTLMIsSentOnceMoreFromADisk() async throws {
        let (path, sum) = try file()
        let (echo, memory) = try await run("upload", path, "\(origins.ntlmURL)/echo")
        #expect(memory < Self.growth)
        #expect(echo.contains("\"length\": \(Self.size)") && echo.contains(sum), "\(echo)")
    }

    @Test func aDownloadIsPassedOnAsAnUpload() async throws {
        let size = 64 << 20
        let source = "\(origins.ntlmURL)/bytes/\(size)"
        let target = "\(origins.certificateURL)/stored/copied-\(ProcessInfo.processInfo.processIdentifier)"
        #expect(try await run("copy", source, target).memory < Self.growth)
        let stored = "\(origins.nginx.root)/stored/\(target.split(separator: "/").last ?? "")"
        #expect(try FileManager.default.attributesOfItem(atPath: stored)[.size] as? Int == size)
    }

    @Test func anAnswerThatIsNoSuccessLeavesNoFile() async throws {
        let program = try LibraryExampleTests.program("transfer")
        let file = folder.file("downloaded")
        let result = try await Command.detached { [home, folder, origins] in
            try Command.run(
                program, [home.path, "download", "\(origins.certificateURL)/missing", file],
                environment: ["TMPDIR": folder.path], in: folder)
        }
        #expect(result.status == 1)
        #expect(result.error == "transfer: the server answered with 404\n")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.filter { $0.hasSuffix(".tmp") || $0 == "downloaded" } == [])
    }
}
