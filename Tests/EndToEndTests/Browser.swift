// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// Debian's Chromium, headless, with its own home. It creates its NSS database, unless `ca install` has done so.
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
    }

    /// The value of `HOME` for programs that use the database.
    var home: String { folder.path }

    /// Opens the pages one by one; proceeds past a warning if the URL begins with `!`. Keeps the screenshots if
    /// COUNTERSIGN_SCREENSHOTS names a folder.
    func open(_ urls: [(name: String, url: String)], proxy: String) throws -> [String: Page] {
        _ = try Tool.path("chromium")
        let done = try Command.run(
            Tool.python(), [Tool.client("browse.py"), home, proxy] + urls.map { "\($0.name)=\($0.url)" },
            in: folder)
        guard done.status == 0 else { throw HarnessError("browse.py: \(done.said)") }
        let pages = try done.output.split(separator: "\n").map { line in
            try JSONDecoder().decode(Page.self, from: Data(line.utf8))
        }
        try keepScreenshots(of: pages.map(\.name), in: folder)
        return Dictionary(uniqueKeysWithValues: pages.map { ($0.name, $0) })
    }

    /// A screenshot of the page, in PNG.
    func picture(_ name: String) -> [UInt8] { TextFile.bytes(folder.file("\(name).png")) }
}

/// Debian's Firefox ESR, headless, with its own home and profile.
final class Firefox: Sendable {
    /// A page as reported by Clients/browse_firefox.py.
    struct Page: Decodable, Sendable {
        let name: String
        /// Firefox's error name, such as `SEC_ERROR_UNKNOWN_ISSUER`.
        let error: String?
        let text: String
    }

    private let folder: TemporaryFolder
    private var profile: String { folder.file(".mozilla/firefox/test.default") }

    init() throws {
        folder = try TemporaryFolder("firefox")
        try FileManager.default.createDirectory(atPath: profile, withIntermediateDirectories: true)
        let made = try Command.run(
            Tool.path("certutil"), ["-N", "--empty-password", "-d", "sql:\(profile)"], in: folder)
        guard made.status == 0 else { throw HarnessError("certutil: \(made.said)") }
    }

    /// The value of `HOME` for programs that use the profile.
    var home: String { folder.path }

    /// As ``Browser/open(_:proxy:)``.
    func open(_ urls: [(name: String, url: String)], proxy: String) throws -> [String: Page] {
        _ = try Tool.path("firefox-esr")
        let done = try Command.run(
            Tool.python(),
            [Tool.client("browse_firefox.py"), home, profile, proxy] + urls.map { "\($0.name)=\($0.url)" },
            in: folder)
        guard done.status == 0 else { throw HarnessError("browse_firefox.py: \(done.said)") }
        let pages = try done.output.split(separator: "\n").map { line in
            try JSONDecoder().decode(Page.self, from: Data(line.utf8))
        }
        try keepScreenshots(of: pages.map(\.name), in: folder)
        return Dictionary(uniqueKeysWithValues: pages.map { ($0.name, $0) })
    }
}

/// Copies screenshots to the folder that COUNTERSIGN_SCREENSHOTS names, if it is set.
private func keepScreenshots(of names: [String], in folder: TemporaryFolder) throws {
    guard let gallery = ProcessInfo.processInfo.environment["COUNTERSIGN_SCREENSHOTS"] else { return }
    for name in names {
        try Data(TextFile.bytes(folder.file("\(name).png"))).write(to: URL(fileURLWithPath: "\(gallery)/\(name).png"))
    }
}
