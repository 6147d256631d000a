// SPDX-License-Identifier: Apache-2.0

import Foundation
import CountersignTestOrigin
import Testing

/// The modules that an app builds because of the product that it uses, as the compiler recorded them.
@Suite(.waiting) struct LibraryModulesTests {
    @Test func anAppThatImportsCountersignNeedsNoPackageButTheLog() throws {
        let needed = try Self.modules(neededBy: "Countersign")
        #expect(needed.contains("CountersignAnswering"))
        #expect(needed.filter { !$0.hasPrefix("Countersign") } == ["Logging"])
    }

    /// The other test reads records that would show SwiftNIO.
    @Test func anAppThatImportsCountersignNIONeedsSwiftNIO() throws {
        let needed = try Self.modules(neededBy: "CountersignNIO")
        #expect(needed.isSuperset(of: ["Countersign", "CountersignProxy", "NIOCore", "NIOPosix"]))
    }

    /// The collections and sequences of Service Lifecycle would make the executable larger by a twentieth.
    @Test func theCommandBuildsNoServiceLifecycle() throws {
        #expect(try !Self.modules(neededBy: "CountersignCLI").contains("ServiceLifecycle"))
        #expect(try Self.modules(neededBy: "CountersignServiceLifecycle").contains("ServiceLifecycle"))
    }

    /// All modules of packages that a module imports, directly or not: a module could import one that its target does
    /// not name, as long as another target of this package has it built.
    private static func modules(neededBy name: String) throws -> Set<String> {
        var found: Set<String> = []
        var open = [name]
        while let module = open.popLast() {
            for next in try imports(of: module) where found.insert(next).inserted { open.append(next) }
        }
        return found.subtracting([name])
    }

    /// The modules that the compiler has read for the files of a module. Empty for one that is not in this package.
    private static func imports(of module: String) throws -> Set<String> {
        guard module.hasPrefix("Countersign") else { return [] }
        let folder = "\(LibrarySymbolsTests.products)/\(module).build"
        // The folder may also have the records of files that were removed.
        let sources = TextFile.text("\(folder)/sources").split(separator: "\n").map { URL(fileURLWithPath: String($0)) }
        try #require(!sources.isEmpty, "no list of files in \(folder)")
        var found: Set<String> = []
        for source in sources {
            let record = TextFile.text("\(folder)/\(source.deletingPathExtension().lastPathComponent).d")
            for path in record.split(whereSeparator: { $0 == " " || $0 == "\n" })
            where path.hasSuffix(".swiftmodule") && path.contains("/Modules/") {
                found.insert(URL(fileURLWithPath: String(path)).deletingPathExtension().lastPathComponent)
            }
        }
        return found
    }
}
