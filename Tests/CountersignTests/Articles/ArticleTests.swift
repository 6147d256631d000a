// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The code in the articles is code that the compiler accepts: every Swift block of every article is, line by line, in
/// a file that the tests or the examples compile. Indentation, empty lines and imports do not count.
///
/// The code of an article is in a file of this folder, in another test, or in an example. A block that begins with
/// `// swift-tools-version` is a manifest, which SwiftPM evaluates.
@Suite(.waiting) struct ArticleTests {
    struct Block: Sendable, CustomTestStringConvertible {
        let article: String
        let number: Int
        let language: String
        let text: String

        var testDescription: String { "\(article), block \(number)" }
        var isManifest: Bool { text.hasPrefix("// swift-tools-version") }
    }

    private static let folder = "\(Tool.repository)/Sources/Countersign/Countersign.docc"

    static let blocks: [Block] = articles.flatMap { article in
        let parts = TextFile.text("\(folder)/\(article)").components(separatedBy: "\n```")
        return stride(from: 1, to: parts.count, by: 2).map { index in
            let lines = parts[index].split(separator: "\n", omittingEmptySubsequences: false)
            return Block(
                article: article, number: (index + 1) / 2, language: lines.first.map(String.init) ?? "",
                text: lines.dropFirst().joined(separator: "\n"))
        }
    }

    private static let articles: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0.hasSuffix(".md") }.sorted()

    /// The lines that count, of every file that is compiled.
    private static let code: [[Substring]] = {
        let roots = ["Tests/CountersignTests", "Examples", "WebView/Sources"].map { "\(Tool.repository)/\($0)" }
        return roots.flatMap { root in
            (FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? [])
                .filter { $0.hasSuffix(".swift") && !$0.contains(".build") }
                .map { lines(of: TextFile.text("\(root)/\($0)")) }
        }
    }()

    private static func lines(of text: String) -> [Substring] {
        text.split(separator: "\n").map { $0.drop { $0 == " " } }
            .filter { !$0.isEmpty && !$0.hasPrefix("import ") && !$0.hasPrefix("@testable import ") }
    }

    @Test func articlesHaveBlocks() {
        #expect(Self.articles.contains("Countersign.md") && Self.blocks.count > 20)
    }

    @Test(arguments: blocks) func aBlockNamesItsLanguage(_ block: Block) {
        #expect(["swift", "console", "json", "c"].contains(block.language), "\(block.text)")
    }

    @Test(arguments: blocks.filter { $0.language == "swift" && !$0.isManifest })
    func aSwiftBlockIsCompiled(_ block: Block) throws {
        let wanted = Self.lines(of: block.text)
        let first = try #require(wanted.first)
        let isCompiled = Self.code.contains { lines in
            lines.indices.contains { start in
                lines[start] == first && lines[start...].starts(with: wanted)
            }
        }
        #expect(isCompiled, "in no file of Tests/CountersignTests/Articles or Examples:\n\(block.text)")
    }

    @Test(arguments: blocks.filter { $0.language == "swift" && $0.isManifest })
    func aManifestIsEvaluated(_ block: Block) throws {
        let app = try TemporaryFolder("manifest")
        try app.write(
            "Package.swift", block.text.replacingOccurrences(of: "../countersign", with: Tool.repository))
        try app.write("Sources/app/main.swift", "")
        let environment = ProcessInfo.processInfo.environment
        // This command loads the whole package graph and builds nothing.
        let loaded = try Command.run(
            "/usr/bin/env", ["swift", "package", "--package-path", app.path, "plugin", "--list"],
            environment: ["PATH": environment["PATH"] ?? "/usr/bin:/bin", "HOME": environment["HOME"] ?? app.path],
            in: app)
        #expect(loaded.status == 0, "\(loaded.said)")
    }
}
