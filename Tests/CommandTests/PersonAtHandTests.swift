// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

@Suite(.waiting) struct PersonAtHandTests {
    /// systemd sets the variable for a service, and programs that write elsewhere inherit it.
    @Test func theJournalsStreamIsToldFromOtherFiles() throws {
        let folder = try TemporaryFolder("journal")
        let paths = try ["stream", "other"].map { try folder.write($0, "") }
        let descriptors = paths.map { open($0, O_RDWR | O_CLOEXEC) }
        defer { for descriptor in descriptors { close(descriptor) } }
        var status = stat()
        try #require(descriptors.allSatisfy { $0 >= 0 } && fstat(descriptors[0], &status) == 0)
        let environment = ["JOURNAL_STREAM": "\(status.st_dev):\(status.st_ino)"]
        #expect(PersonAtHand.isJournal(descriptors[0], environment))
        #expect(!PersonAtHand.isJournal(descriptors[1], environment))
        #expect(!PersonAtHand.isJournal(descriptors[0], [:]))
        #expect(!PersonAtHand.isJournal(descriptors[0], ["JOURNAL_STREAM": "\(status.st_dev)"]))
    }
}
