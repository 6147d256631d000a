// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignPrometheus

@Suite struct ProcessMetricsTests {
    private static let stat =
        "4711 (a) S (b) S 1 4711 4711 0 -1 4194560 900 0 1 0 250 50 0 0 20 0 5 0 12345 99999744 1500 1 1"

    private static func read(_ stat: String, _ system: String = "cpu 1 2 3\nbtime 1800000000\n") -> ProcessMetrics? {
        ProcessMetrics(stat: stat, systemStat: system, ticksPerSecond: 100, pageBytes: 4096, openFileDescriptors: 9)
    }

    @Test func theNameMayHaveParentheses() throws {
        let found = try #require(Self.read(Self.stat))
        let text = PrometheusRegistry().text { found.write(to: &$0) }
        #expect(
            String(decoding: text, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") } == [
                "process_cpu_seconds_total 3", "process_open_fds 9", "process_resident_memory_bytes 6144000",
                "process_start_time_seconds 1800000123.45",
            ])
    }

    @Test(arguments: ["", "4711 (a", "4711 (a) S 1 2 3", "4711 (a) S 1 1 1 0 -1 1 1 0 1 0 x 50 0 0 20 0 5 0 1 1 1 1"])
    func anotherFileIsNotRead(stat: String) {
        #expect(Self.read(stat) == nil)
        #expect(Self.read(Self.stat, "cpu 1 2 3\n") == nil)
    }

    @Test func theKernelReportsThisProcess() throws {
        let found = try #require(ProcessMetrics.current())
        #expect(found.residentBytes > 1_000_000 && found.startSeconds > 1_600_000_000)
        #expect(try #require(found.openFileDescriptors) >= 3)
    }
}
