// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// An independent HTTP client.
enum HTTPClient: String, CaseIterable, Sendable {
    case curl, wget, requests

    struct Request {
        var method = "GET"
        var url: String
        /// A file to send.
        var body: String?
        var fields: [(String, String)] = []
        /// Ignores certificate errors.
        var isInsecure = false
        /// Extra flags for curl.
        var flags: [String] = []
    }

    struct Response {
        var status: Int
        var body: [UInt8]
        var fields: [(name: String, value: String)]
        var exit: Int32
        /// The client's complete output, for the message of a failed expectation.
        var said: String

        var text: String { String(decoding: body, as: UTF8.self) }

        func values(_ name: String) -> [String] {
            fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }

        /// The `Proxy-Status` values, joined.
        var proxyStatus: String { values("Proxy-Status").joined(separator: ", ") }
    }

    /// - Parameters:
    ///   - proxy: the proxy's URL, or nil for a direct connection.
    ///   - anchors: a PEM file of the only trust anchors of the client.
    func send(_ request: Request, proxy: String?, anchors: String) throws -> Response {
        let scratch = try TemporaryFolder("client")
        switch self {
        case .curl: return try Self.curl(request, proxy, anchors, scratch)
        case .wget: return try Self.wget(request, proxy, anchors, scratch)
        case .requests: return try Self.requests(request, proxy, anchors, scratch)
        }
    }

    private static func curl(
        _ request: Request, _ proxy: String?, _ anchors: String, _ scratch: TemporaryFolder
    ) throws -> Response {
        let (head, body) = (scratch.file("head"), scratch.file("body"))
        var arguments = ["-q", "-sS", "-D", head, "-o", body, "--suppress-connect-headers", "--max-time", "50"]
        arguments += ["--cacert", anchors, "-w", "%{http_code}"]
        if let proxy { arguments += ["-x", proxy] }
        if request.isInsecure { arguments.append("-k") }
        if request.method == "HEAD" { arguments.append("-I") } else { arguments += ["-X", request.method] }
        if let file = request.body { arguments += ["--data-binary", "@\(file)"] }
        for (name, value) in request.fields { arguments += ["-H", "\(name): \(value)"] }
        arguments += request.flags + [request.url]
        let done = try Command.run(try Tool.path("curl"), arguments, in: scratch)
        return Response(
            status: Int(done.output.suffix(3)) ?? 0, body: TextFile.bytes(body),
            fields: lastHead(TextFile.lines(head)), exit: done.status, said: done.said)
    }

    private static func wget(
        _ request: Request, _ proxy: String?, _ anchors: String, _ scratch: TemporaryFolder
    ) throws -> Response {
        let body = scratch.file("body")
        var arguments = [
            "-nv", "-S", "-O", body, "--content-on-error", "--tries=1", "--timeout=50", "--max-redirect=0",
        ]
        arguments += ["--no-config", "--no-hsts", "--method=\(request.method)", "--ca-certificate=\(anchors)"]
        if let proxy {
            arguments += ["-e", "use_proxy=yes", "-e", "http_proxy=\(proxy)", "-e", "https_proxy=\(proxy)"]
        }
        if request.isInsecure { arguments.append("--no-check-certificate") }
        if let file = request.body { arguments.append("--body-file=\(file)") }
        for (name, value) in request.fields { arguments.append("--header=\(name): \(value)") }
        arguments.append(request.url)
        let done = try Command.run(try Tool.path("wget"), arguments, in: scratch)
        let lines = done.error.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("  ") }.map {
            String($0.dropFirst(2))
        }
        let status = lines.last { $0.hasPrefix("HTTP/") }.flatMap { Int($0.split(separator: " ")[1]) }
        return Response(
            status: status ?? 0, body: TextFile.bytes(body), fields: lastHead(lines), exit: done.status,
            said: done.said)
    }

    private static func requests(
        _ request: Request, _ proxy: String?, _ anchors: String, _ scratch: TemporaryFolder
    ) throws -> Response {
        let body = scratch.file("body")
        var arguments = [Tool.server("client.py"), request.method, request.url, proxy ?? "-"]
        arguments += [request.isInsecure ? "none" : anchors, request.body ?? "-", body]
        arguments += request.fields.map { "\($0.0):\($0.1)" }
        let done = try Command.run(try Tool.python(), arguments, in: scratch)
        struct Report: Decodable {
            let status: Int
            let headers: [[String]]
        }
        guard let report = try? JSONDecoder().decode(Report.self, from: Data(done.output.utf8)) else {
            throw HarnessError("client.py: \(done.said)")
        }
        return Response(
            status: report.status, body: TextFile.bytes(body), fields: report.headers.map { ($0[0], $0[1]) },
            exit: done.status, said: done.said)
    }

    /// The fields of the last head in a dump of heads.
    private static func lastHead(_ lines: [String]) -> [(name: String, value: String)] {
        let start = lines.lastIndex { $0.hasPrefix("HTTP/") } ?? 0
        return lines.dropFirst(start + 1).compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            return parts.count == 2 ? (parts[0], parts[1]) : nil
        }
    }
}
