// SPDX-License-Identifier: Apache-2.0

import Foundation
import CountersignTestOrigin
import Testing

/// The requirements for an app's package to depend on this one.
@Suite(.waiting) struct LibraryPackageTests {
    /// SwiftPM allows a target name once in a whole package graph. The app has a target for every folder name of this
    /// package.
    @Test func anAppMayHaveModulesNamedLikeTheFoldersOfThisPackage() throws {
        let folders = try ["Sources", "Tests"].flatMap {
            try FileManager.default.contentsOfDirectory(atPath: "\(Tool.repository)/\($0)")
        }
        let names = folders.filter { !$0.hasPrefix("Countersign") && $0 != "Fixtures" }.sorted()
        try #require(names.contains("Proxy") && names.contains("Vault") && names.contains("TestOrigin"))

        let app = try TemporaryFolder()
        for name in names {
            try FileManager.default.createDirectory(
                atPath: app.file("Sources/\(name)"), withIntermediateDirectories: true)
            try app.write("Sources/\(name)/Empty.swift", "")
        }
        let targets = names.map { name in
            #".target(name: "\#(name)", dependencies: [.product(name: "Countersign", package: "countersign")])"#
        }
        try app.write(
            "Package.swift",
            """
            // swift-tools-version: 6.2
            import PackageDescription

            let package = Package(
                name: "app", dependencies: [.package(name: "countersign", path: "\(Tool.repository)")],
                targets: [\(targets.joined(separator: ", "))])
            """)

        // This command loads the whole package graph and builds nothing.
        let environment = ProcessInfo.processInfo.environment
        let loaded = try Command.run(
            "/usr/bin/env", ["swift", "package", "--package-path", app.path, "plugin", "--list"],
            environment: ["PATH": environment["PATH"] ?? "/usr/bin:/bin", "HOME": environment["HOME"] ?? app.path],
            in: app)
        #expect(loaded.status == 0, "\(loaded.said)")
    }

    /// Imports are internal in the library's modules unless they say otherwise, and the compiler enforces that for the
    /// public interface. This lists the modules that it may name besides the standard library and Foundation.
    @Test(arguments: [
        ("Countersign", ["FoundationEssentials", "Logging"]),
        ("CountersignNIO", ["Countersign", "NIOCore"]),
        ("CountersignServiceLifecycle", ["CountersignNIO", "ServiceLifecycle"]),
        ("CountersignURLSession", ["Countersign", "CountersignNIO", "Foundation", "FoundationNetworking"]),
    ])
    func thePublicInterfaceNamesTypesOfFewOtherModules(_ module: String, _ expected: [String]) throws {
        let folder = "\(Tool.repository)/Sources/\(module)"
        let files = try #require(FileManager.default.enumerator(atPath: folder)).compactMap { $0 as? String }
        var imported: Set<String> = []
        for file in files where file.hasSuffix(".swift") {
            for line in TextFile.lines("\(folder)/\(file)") {
                let words = line.split(separator: " ")
                if words.starts(with: ["public", "import"]) { imported.formUnion(words.dropFirst(2).map(String.init)) }
                #expect(!words.contains("@_exported"), "\(file)")
            }
        }
        #expect(imported.sorted() == expected)
    }
}
