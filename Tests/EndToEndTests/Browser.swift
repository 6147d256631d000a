// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// Debian's Chromium, headless, with its own home and an empty NSS database.
final class Browser: Sendable {
    /// A page as reported by Clients/browse.py.
    struct Page: Decodable, Sendable {
        let name: String
        /// Chromium's error name, such as `net::ERR_CERT_DATE_INVALID`.
        let error: String?
        let text: String
        /// Chromium's security state: `secure`, `insecure-broken`, ….
        let state: String
        let issuer: String?
        /// The number of password prompts.
        let prompts: Int
    }

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder("browser")
        try FileManager.default.createDirectory(
            atPath: folder.file(".pki/nssdb"), withIntermediateDirectories: true)
        let database = "sql:\(folder.file(".pki/nssdb"))"
        let made = try Command.run(Tool.path("certutil"), ["-N", "--empty-password", "-d", database], in: folder)
        guard made.status == 0 else { throw HarnessError("certutil: \(made.said)") }
    }

    /// The value of `HOME` for programs that look for the database.
    var home: String { folder.path }

    /// Opens the pages one by one. Keeps the screenshots if COUNTERSIGN_SCREENSHOTS names a folder.
    func open(_ urls: [(name: String, url: String)], proxy: String) throws -> [String: Page] {
        _ = try Tool.path("chromium")
        let done = try Command.run(
            Tool.python(), [Tool.client("browse.py"), home, proxy] + urls.map { "\($0.name)=\($0.url)" },
            in: folder)
        guard done.status == 0 else { throw HarnessError("browse.py: \(done.said)") }
        let pages = try done.output.split(separator: "\n").map { line in
            try JSONDecoder().decode(Page.self, from: Data(line.utf8))
        }
        if let gallery = ProcessInfo.processInfo.environment["COUNTERSIGN_SCREENSHOTS"] {
            for page in pages {
                try Data(picture(page.name)).write(to: URL(fileURLWithPath: "\(gallery)/\(page.name).png"))
            }
        }
        return Dictionary(uniqueKeysWithValues: pages.map { ($0.name, $0) })
    }

    /// A screenshot of the page, in PNG.
    func picture(_ name: String) -> [UInt8] { TextFile.bytes(folder.file("\(name).png")) }
}
