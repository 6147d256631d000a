// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Countersign

@Suite struct HomeFileTests {
    private static func with(_ bytes: [UInt8], _ body: (HomeFile) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("home-file-\(UUID().uuidString)").path
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(HomeFile(path: path, name: "the file"))
    }

    @Test(arguments: [0, 1, 4096, 65_535, 65_536, 300_001]) func aFileIsReadWhole(_ count: Int) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        try Self.with(bytes) { file in
            let (whole, again) = (try file.read(upTo: count), try file.read(upTo: count + 1))
            #expect(whole == bytes && again == bytes)
        }
    }

    @Test func oneThatIsTooLargeIsNotReadAtAll() throws {
        try Self.with([1, 2, 3]) { file in
            let error = #expect(throws: CountersignError.self) { try file.read(upTo: 2) }
            #expect(error.map(String.init(describing:))?.contains("the file is larger than 2 bytes") == true)
        }
    }

    /// As one that another program is writing to: the system says that it has nothing in it.
    @Test func oneThatHasMoreThanItIsSaidToHaveIsReadWhole() throws {
        let file = HomeFile(path: "/proc/self/mountinfo")
        let expected = try #require(FileManager.default.contents(atPath: "/proc/self/mountinfo"))
        let whole = try file.read(upTo: 1 << 20)
        #expect(whole == Array(expected))
        let error = #expect(throws: CountersignError.self) { try file.read(upTo: 5) }
        #expect(error.map(String.init(describing:))?.contains("mountinfo is larger than 5 bytes") == true)
    }

    @Test func oneThatIsNotThereIsNil() throws {
        let nothing = try HomeFile(path: "/nowhere/at/all").readIfThere(upTo: 1)
        #expect(nothing == nil)
        #expect(throws: CountersignError.self) { try HomeFile(path: "/nowhere/at/all").read(upTo: 1) }
        #expect(throws: CountersignError.self) { try HomeFile(path: "/").readIfThere(upTo: 1) }
    }
}
