// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@Suite(.waiting) struct HomeFileTests {
    private static func with(_ bytes: [UInt8], _ body: (HomeFile) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("home-file-\(UUID().uuidString)").path
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(HomeFile(path: path, name: "the file"))
    }

    @Test(arguments: [0, 1, 4095, 4096, 300_001]) func aFileIsReadCompletely(_ count: Int) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        try Self.with(bytes) { file in
            let (exact, larger) = (try file.read(upTo: count), try file.read(upTo: count + 1))
            let isWhole = exact == bytes && larger == bytes
            #expect(isWhole)
        }
    }

    @Test func aFileThatIsTooLargeIsRefused() throws {
        try Self.with([1, 2, 3]) { file in
            let error = #expect(throws: CountersignError.self) { try file.read(upTo: 2) }
            #expect(error.map(String.init(describing:))?.contains("the file is larger than 2 bytes") == true)
        }
    }

    @Test func aKernelFileThatReportsNoSizeIsReadCompletely() throws {
        let path = "/proc/sys/kernel/pid_max"
        let bytes = try HomeFile(path: path).read(upTo: 100)
        #expect(bytes.count > 2)
        #expect(FileManager.default.contents(atPath: path).map(Array.init) == bytes)
    }

    /// For example, because another program is appending to it.
    @Test func aFileThatIsLongerThanExpectedIsReadCompletely() throws {
        let bytes = (0..<300_001).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        try Self.with(bytes) { file in
            let isWhole = try Self.contents(of: file, upTo: bytes.count) == bytes
            #expect(isWhole)
            let error = #expect(throws: CountersignError.self) { try Self.contents(of: file, upTo: 200_000) }
            #expect(error.map(String.init(describing:))?.contains("the file is larger than 200000 bytes") == true)
        }
    }

    private static func contents(of file: HomeFile, upTo limitBytes: Int) throws -> [UInt8] {
        let descriptor = open(file.path, O_RDONLY)
        defer { close(descriptor) }
        return try file.contents(of: descriptor, about: 1, upTo: limitBytes)
    }

    @Test func aMissingFileIsNil() throws {
        let nothing = try HomeFile(path: "/nowhere/at/all").readIfThere(upTo: 1)
        #expect(nothing == nil)
        #expect(throws: CountersignError.self) { try HomeFile(path: "/nowhere/at/all").read(upTo: 1) }
        #expect(throws: CountersignError.self) { try HomeFile(path: "/").readIfThere(upTo: 1) }
    }

    // MARK: Killed writers

    @Test func temporaryFilesOfKilledWritersAreRemoved() throws {
        let folder = try TemporaryFolder("home")
        let home = Home(path: folder.path)
        let abandoned = [
            "AllowedSites/work.sites.4711.1.new", "Certs/identities/laptop.pem.4711.2.new",
            "Certs/anchors/a.pem.1.1.new", "Certs/interception/root.pem.1.1.new", "vault.new", "vault.key.new",
        ]
        let others = ["Certs/identities/laptop.pem", "AllowedSites/my.new", "AllowedSites/1.2.new", "vault"]
        for name in abandoned + others { try folder.write(name, "x") }
        let running = "Certs/identities/laptop.pem.4711.3.new"
        try folder.write(running, "x")
        let writer = open(folder.file(running), O_RDONLY)
        try #require(writer >= 0 && flock(writer, LOCK_EX) == 0)
        home.removeAbandonedFiles()
        #expect(abandoned.filter { access(folder.file($0), F_OK) == 0 } == [])
        #expect((others + [running]).filter { access(folder.file($0), F_OK) != 0 } == [])
        // A process that another test has just started may still have the descriptor.
        flock(writer, LOCK_UN)
        close(writer)
        home.removeAbandonedFiles()
        #expect(access(folder.file(running), F_OK) != 0)
    }

    @Test func cleaningDoesNotDisturbAWriter() async throws {
        let folder = try TemporaryFolder("home")
        let home = Home(path: folder.path)
        let cleaner = Task.detached { while !Task.isCancelled { home.removeAbandonedFiles() } }
        for number in 0..<500 {
            let text = Array("\(number)".utf8)
            try home.identityChain(named: "laptop").replace(with: text)
            #expect(TextFile.bytes(home.identityChain(named: "laptop").path) == text)
        }
        cleaner.cancel()
        await cleaner.value
    }
}
