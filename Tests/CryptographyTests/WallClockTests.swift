// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@Suite struct WallClockTests {
    /// The numbers are what `date -u -d TIME +%s` writes; the first two are examples of RFC 3339 §5.8.
    @Test(
        arguments: [
            ("1985-04-12T23:20:50.52Z", 482_196_050), ("1996-12-19T16:39:57-08:00", 851_042_397),
            ("2016-07-11T22:14:10Z", 1_468_275_250), ("2024-02-29t00:00:00z", 1_709_164_800),
            ("2026-01-01T00:00:00+05:30", 1_767_205_800), ("1970-01-01T00:00:00Z", 0),
        ] as [(String, Int64)])
    func aTimeIsRead(text: String, seconds: Int64) { #expect(WallClock.seconds(rfc3339: text) == seconds) }

    @Test(
        arguments: [
            "", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
            "2016-12-31T23:59:60Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+0530", "2026-01-01T00:00:00ZZ",
            "+026-01-01T00:00:00Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+05:30Z",
        ])
    func anythingElseIsNone(text: String) { #expect(WallClock.seconds(rfc3339: text) == nil) }

    @Test(arguments: [0, 951_782_399, 1_767_225_600, 4_102_444_800] as [Int64])
    func whatIsWrittenIsReadAgain(seconds: Int64) {
        #expect(WallClock.seconds(rfc3339: WallClock.rfc3339(seconds)) == seconds)
    }
}
