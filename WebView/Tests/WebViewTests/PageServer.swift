// SPDX-License-Identifier: Apache-2.0

import Foundation

/// `Servers/pages.py`: two origins with http, one with https, and a proxy. Shared by all tests.
final class PageServer: Sendable {
    static let shared: PageServer = {
        do { return try PageServer() } catch { preconditionFailure("the page server does not start: \(error)") }
    }()

    struct Request: Decodable {
        let origin: String
        let method: String
        let path: String
        var authorized: Bool?
        var cookie: String?
        var token: String?
        var userAgent: String?
        var proxyAuthorization: String?

        enum CodingKeys: String, CodingKey {
            case origin, method, path, authorized
            case cookie = "Cookie"
            case token = "X-Token"
            case userAgent = "User-Agent"
            case proxyAuthorization = "Proxy-Authorization"
        }
    }

    let first: String
    let second: String
    /// An https origin on which nothing listens.
    let silent: String
    let securePort: Int
    let proxyPort: Int
    let folder: String
    private let process: LineProcess

    private init() throws {
        folder = FileManager.default.temporaryDirectory.path + "/webview-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        process = try LineProcess("/usr/bin/env", ["python3", Self.script("pages.py"), folder])
        guard let ports = process.first({ try? JSONDecoder().decode([String: Int].self, from: Data($0.utf8)) }),
            let first = ports["first"], let second = ports["second"], let secure = ports["secure"],
            let proxy = ports["proxy"], let silent = ports["silent"]
        else { throw CocoaError(.fileReadUnknown) }
        self.first = "http://127.0.0.1:\(first)"
        self.second = "http://127.0.0.1:\(second)"
        self.silent = "https://127.0.0.1:\(silent)"
        (securePort, proxyPort) = (secure, proxy)
    }

    static func script(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Servers/" + name).path
    }

    /// The number of requests up to now, from which `request` and `requests` count.
    var mark: Int { process.allLines.count }

    /// Waits for a request.
    func request(since mark: Int, _ match: (Request) -> Bool) -> Request? {
        process.first(from: mark) { line in Self.request(line).flatMap { match($0) ? $0 : nil } }
    }

    func requests(since mark: Int) -> [Request] {
        process.allLines[mark...].compactMap(Self.request)
    }

    /// The answer that a page's script sent to the server with `/answer?…`.
    func answer(since mark: Int) -> String? {
        let path = request(since: mark) { $0.path.hasPrefix("/answer?") }?.path
        return path.flatMap { String($0.dropFirst(8)).removingPercentEncoding }
    }

    private static func request(_ line: String) -> Request? {
        try? JSONDecoder().decode(Request.self, from: Data(line.utf8))
    }
}

extension StringProtocol {
    /// For the value of a query parameter.
    var encoded: String {
        addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }
}
