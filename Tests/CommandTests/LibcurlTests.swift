// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Loading libcurl and its dependencies takes as long as the rest of a command's start-up.
@Suite(.waiting) struct LibcurlTests {
    @Test func commandsDoNotLoadLibcurlAtStart() throws {
        let sandbox = try Sandbox()
        let result = try Command.run(
            try Sandbox.executable, ["--version"],
            environment: try sandbox.environment(adding: ["LD_TRACE_LOADED_OBJECTS": "1"]), in: sandbox.folder)
        #expect(result.status == 0)
        #expect(result.output.contains("libssl.so"))
        #expect(!result.output.contains("libcurl"), "\(result.output)")
    }

    @Test func enrolmentReportsMissingLibcurl() throws {
        let libraries = try TemporaryFolder("libraries")
        _ = try libraries.write("libcurl.so.4", "no library")
        let place = try EnrolledSandbox(environment: ["LD_LIBRARY_PATH": libraries.path])
        let result = try place.enroll()
        #expect(result.status == 1)
        #expect(result.error.hasPrefix("countersign: error: "), "\(result.said)")
        #expect(
            result.error.contains("libcurl cannot be loaded\ncountersign: hint: install the package libcurl4"),
            "\(result.said)")
        #expect(try place.identity() == nil)
    }
}
