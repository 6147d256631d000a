// SPDX-License-Identifier: Apache-2.0

import Foundation
import CountersignTestOrigin
import Testing

/// The public API is unchanged, symbol by symbol.
@Suite(.waiting) struct LibrarySymbolsTests {
    private static let folder = Result { try TemporaryFolder("symbols") }

    /// The folder of the build to which this test belongs.
    static var products: String {
        let bundles = ProcessInfo.processInfo.arguments.filter { $0.hasSuffix(".xctest") }
        let bundle = bundles.first ?? ProcessInfo.processInfo.arguments[0]
        return URL(fileURLWithPath: bundle).deletingLastPathComponent().path
    }

    private static func run(_ script: String) throws -> CommandResult {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return try Command.run(
            "\(Tool.repository)/Scripts/\(script)", [products], environment: ["PATH": path],
            in: try Self.folder.get())
    }

    @Test func thePublicSymbolsMatchTheList() throws {
        let result = try Self.run("symbols")
        try #require(result.status == 0, "\(result.said)")
        let found = Set(result.output.split(separator: "\n"))
        let agreed = TextFile.text("\(Tool.repository)/Tests/Fixtures/library/symbols")
        let listed = Set(agreed.split(separator: "\n"))
        #expect(!listed.isEmpty)
        let hint: Comment = "if the change is intended, run: Scripts/symbols > Tests/Fixtures/library/symbols"
        #expect(found.subtracting(listed).sorted() == [], hint)
        #expect(listed.subtracting(found).sorted() == [], hint)
    }

    @Test func everyPublicSymbolIsDocumentedAndTheDocumentationBuildsWithoutWarnings() throws {
        let result = try Self.run("docs")
        #expect(result.status == 0, "\(result.said)")
    }
}
