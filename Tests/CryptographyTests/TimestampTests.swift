// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignCryptography

@Suite struct TimestampTests {
    @Test(arguments: [
        (Int64(0), Int64(0), "1970-01-01T00:00:00.000Z"), (951_782_400, 7, "2000-02-29T00:00:00.007Z"),
        (-1, 999, "1969-12-31T23:59:59.999Z"), (4_107_542_399, 1, "2100-02-28T23:59:59.001Z"),
        (1_767_225_600, 250, "2026-01-01T00:00:00.250Z"), (Int64.max, 5000, "9999-12-31T23:59:59.999Z"),
        (Int64.min, -3, "0000-01-01T00:00:00.000Z"),
    ])
    func timesAreWrittenAndReadBack(seconds: Int64, milliseconds: Int64, text: String) {
        let time = Timestamp((seconds, milliseconds))
        #expect(time.text == text)
        #expect(Timestamp(text) == time)
    }

    @Test func agreesWithTheSystemsCalendar() {
        for seconds in stride(from: Int64(-5_000_000_000), through: 50_000_000_000, by: 86_399 * 331) {
            let text = Timestamp((seconds, 0)).text
            #expect(text.dropLast(5) + "Z" == WallClock.rfc3339(seconds))
            #expect(Timestamp(text)?.seconds == seconds)
        }
    }

    @Test(arguments: [
        "", "2026-01-01T00:00:00Z", "2026-02-29T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-01-01T24:00:00.000Z",
        "2026-01-01T00:00:60.000Z", "2026-01-01 00:00:00.000Z", "2026-01-01T00:00:00.000z", "2026-01-0xT00:00:00.000Z",
        "٢٠٢٦-01-01T00:00.000Z",
    ])
    func otherTextsAreNoTimes(text: String) { #expect(Timestamp(text) == nil) }
}
