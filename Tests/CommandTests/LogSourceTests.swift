// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// A file that is renamed while it is read.
@Suite struct LogSourceTests {
    /// Between the two looks, at the name and at the present file.
    @Test func aLineThatIsWrittenDuringTheLookIsNotLost() throws {
        let folder = try TemporaryFolder("log")
        let path = try folder.write("access.log", "one\n")
        let source = try LogSource(path: path) { name in
            if let file = FileHandle(forWritingAtPath: name) {
                _ = try? file.seekToEnd()
                try? file.write(contentsOf: Data("two\n".utf8))
                try? file.close()
            }
            guard rename(name, name + ".1") == 0 else { return nil }
            try? Data("three\n".utf8).write(to: URL(fileURLWithPath: name))
            return LogSource.status(at: name)
        }
        func next() throws -> String { String(decoding: try source.next(), as: UTF8.self) }
        #expect(try next() == "one\n" && next() == "")
        #expect(source.followChange() == .none)
        #expect(try next() == "two\n")
    }
}
