// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Pages that make a browser send requests to other sites in every way that it has; Servers/page_site.py lists them.
package final class PageSite: Sendable {
    /// Where a page sends its requests.
    package struct Target: Encodable, Sendable {
        package let kind: String
        package let url: String
        /// The URL of a WebSocket.
        package let socket: String?

        package init(kind: String, url: String, socket: String? = nil) {
            self.kind = kind
            self.url = url
            self.socket = socket
        }
    }

    /// Over https.
    package let port: Int
    package let plainPort: Int
    package let log: RequestLog
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// /api accepts this user.
    package init(user: String, password: String) throws {
        folder = try TemporaryFolder("pages")
        log = RequestLog(path: folder.file("requests"))
        let pki = try TestPKI.shared
        process = try ChildProcess(
            try Tool.python(),
            [
                Tool.server("page_site.py"), pki.certificate("server"), pki.key("server"), log.path, user, password,
            ], capture: folder.file("server"))
        plainPort = try Int(process.line(after: "plain ")) ?? 0
        port = try Int(process.line(after: "listening ")) ?? 0
    }

    /// The URL of a page of `origin` whose requests have queries that begin with `id`.
    package func page(of origin: String, id: String, _ targets: [Target]) throws -> String {
        struct Plan: Encodable {
            let id: String
            let targets: [Target]
        }
        return try "\(origin)/page?\(Self.query(Plan(id: id, targets: targets)))"
    }

    /// The URL of a page of `origin` that leads the browser to `url`.
    package func page(of origin: String, leadingTo url: String, method: String) throws -> String {
        try "\(origin)/top?\(Self.query(["url": url, "method": method]))"
    }

    private static func query(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
        return text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
    }

    /// The results of the pages, by the query of each request.
    package var results: [String: String] {
        struct Page: Decodable {
            let page: String
            let results: [String: String]
        }
        return TextFile.lines(log.path).compactMap { try? JSONDecoder().decode(Page.self, from: Data($0.utf8)) }
            .reduce(into: [:]) { $0.merge($1.results) { $1 } }
    }
}
