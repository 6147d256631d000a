// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WebViewProtocol

/// All tests with a window: one at a time, because each needs up to five processes.
@Suite(.serialized) enum WebView {}

/// A running `countersign-webview`.
final class WebViewProcess {
    let process: LineProcess

    init(_ arguments: [String] = ["--test"], environment: [String: String] = [:]) throws {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(
            "countersign-webview")
        process = try LineProcess(program.path, arguments, environment: environment)
    }

    deinit { process.kill() }

    /// Starts it and sends `open` for `path` on the first origin.
    static func open(
        _ path: String, arguments: [String] = ["--test"], _ change: (inout OpenRequest) -> Void = { _ in }
    ) throws -> WebViewProcess {
        let view = try WebViewProcess(arguments)
        var request = request(path)
        change(&request)
        view.send(.open(request))
        return view
    }

    static func request(_ path: String) -> OpenRequest {
        OpenRequest(
            url: PageServer.shared.first + path, redirectURIs: ["com.example.app:/cb", "https://app.example/cb"],
            allowedOrigins: [PageServer.shared.first], timeLimit: .seconds(300))
    }

    func send(_ command: Command) {
        guard let line = try? command.line else {
            Issue.record("a command cannot be written")
            return
        }
        process.write(line + [UInt8(ascii: "\n")])
    }

    /// Waits for an event.
    func event<Value>(
        _ match: (Event) -> Value?, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Value {
        try #require(
            process.first { line in (try? Event(line: Array(line.utf8))).flatMap(match) },
            "there was no such event among \(process.allLines), \(process.standardError)",
            sourceLocation: sourceLocation)
    }

    func waitFor(_ event: Event, sourceLocation: SourceLocation = #_sourceLocation) throws {
        try self.event({ $0 == event ? () : nil }, sourceLocation: sourceLocation)
    }

    /// The first page's end, or another page's.
    func loaded(_ url: String? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
        try event(
            { if case .loadFinished(let loaded) = $0, url == nil || loaded == url { () } else { nil } },
            sourceLocation: sourceLocation)
    }

    func redirect(sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
        try event({ if case .redirect(let url) = $0 { url } else { nil } }, sourceLocation: sourceLocation)
    }

    func refusal(sourceLocation: SourceLocation = #_sourceLocation) throws -> Event {
        try event({ if case .navigationRefused = $0 { $0 } else { nil } }, sourceLocation: sourceLocation)
    }

    var events: [Event] { process.allLines.compactMap { try? Event(line: Array($0.utf8)) } }

    /// Closes the window, and checks that the run ended well and that no secret is on standard error.
    func close(sourceLocation: SourceLocation = #_sourceLocation) {
        send(.close)
        ended(.close, sourceLocation: sourceLocation)
    }

    func ended(_ reason: ClosedReason, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(process.exitStatus() == 0, "\(process.standardError)", sourceLocation: sourceLocation)
        #expect(events.last == .closed(reason), sourceLocation: sourceLocation)
        #expect(!process.standardError.contains("secret"), sourceLocation: sourceLocation)
    }

    func failed(sourceLocation: SourceLocation = #_sourceLocation) throws -> FailureCode {
        #expect(process.exitStatus() == 1, sourceLocation: sourceLocation)
        return try event(
            { if case .failed(let code, _, _) = $0 { code } else { nil } }, sourceLocation: sourceLocation)
    }

    /// The processes below this one.
    var descendants: [pid_t] {
        var parents: [pid_t: pid_t] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let id = pid_t(name), let stat = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8),
                let end = stat.lastIndex(of: ")")
            else { continue }
            let fields = stat[end...].split(separator: " ")
            // A zombie has ended.
            if fields.count > 2, fields[1] != "Z" { parents[id] = pid_t(fields[2]) }
        }
        return parents.keys.filter { id in
            var next = parents[id]
            while let parent = next {
                if parent == process.processID { return true }
                next = parents[parent]
            }
            return false
        }
    }
}
