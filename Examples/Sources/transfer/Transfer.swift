// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import CountersignURLSession
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Moves content between files and servers whose challenges are answered from a home, without holding it in memory:
///
///     transfer HOME download URL FILE
///     transfer HOME upload FILE URL
///     transfer HOME copy URL URL
///
/// Prints the responses to uploads, and by how much the process's memory grew.
@main
struct Transfer {
    static func main() async {
        do {
            let words = CommandLine.arguments
            guard words.count == 5 else { throw Failure("usage: transfer HOME download|upload|copy FROM TO") }
            try await withSession(home: URL(filePath: words[1])) { session in
                let before = peakMemory()
                switch words[2] {
                case "download": try await download(from: url(words[3]), to: words[4], with: session)
                case "upload": print(try await upload(words[3], to: url(words[4]), with: session))
                case "copy": print(try await copy(from: url(words[3]), to: url(words[4]), with: session))
                default: throw Failure("\(words[2]) is not download, upload or copy")
                }
                print("memory: \(peakMemory() - before) KiB")
            }
        } catch {
            FileHandle.standardError.write(Data("transfer: \(error.localizedDescription)\n".utf8))
            exit(1)
        }
    }

    static func withSession(
        home: URL, _ body: @Sendable (AnsweringSession) async throws -> Void
    ) async throws {
        let controller = try ChallengeController(home: home)
        let proxy = ChallengeProxy(controller)
        let running = Task { try await proxy.run() }
        let session = try await AnsweringSession(through: proxy)
        try await body(session)
        running.cancel()
        try await running.value
    }

    static func download(from url: URL, to path: String, with session: AnsweringSession) async throws {
        let (temporary, response) = try await session.download(from: url) { progress in
            show(progress.countOfBytesReceived, of: progress.countOfBytesExpectedToReceive)
        }
        defer { try? FileManager.default.removeItem(at: temporary) }
        try check(response)
        try FileManager.default.moveItem(at: temporary, to: URL(fileURLWithPath: path))
    }

    static func upload(_ path: String, to url: URL, with session: AnsweringSession) async throws -> String {
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        let (answer, response) = try await session.upload(for: request, fromFile: URL(fileURLWithPath: path)) {
            show($0.countOfBytesSent, of: $0.countOfBytesExpectedToSend)
        }
        try check(response)
        return String(decoding: answer, as: UTF8.self)
    }

    static func copy(from source: URL, to target: URL, with session: AnsweringSession) async throws -> String {
        let (bytes, response) = try await session.bytes(from: source)
        try check(response)
        var request = URLRequest(url: target)
        request.httpMethod = "PUT"
        let (answer, end) = try await session.upload(for: request, from: bytes.pieces)
        try check(end)
        return String(decoding: answer, as: UTF8.self)
    }

    static func check(_ response: URLResponse) throws {
        guard let status = (response as? HTTPURLResponse)?.statusCode, (200..<300).contains(status) else {
            throw Failure("the server answered with \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        }
    }

    /// Writes the progress on one line of a terminal.
    static func show(_ done: Int64, of all: Int64?) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        FileHandle.standardError.write(Data("\r\(done) of \(all.map { "\($0)" } ?? "?") bytes".utf8))
    }

    private static func url(_ text: String) throws -> URL {
        guard let url = URL(string: text) else { throw Failure("\(text) is not a URL") }
        return url
    }

    /// The most memory that the process has had so far, in KiB (proc(5), VmHWM).
    private static func peakMemory() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
        return Int(line.filter(\.isNumber)) ?? 0
    }
}

struct Failure: LocalizedError {
    let errorDescription: String?

    init(_ reason: String) { errorDescription = reason }
}
