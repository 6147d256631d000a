// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A time of the system clock, to the millisecond.
package struct Timestamp: Sendable, Hashable {
    /// Since 1970 in UTC.
    package let seconds: Int64
    /// 0 to 999.
    package let milliseconds: Int64

    /// The first and the last second that RFC 3339 can write: 0000-01-01 and 9999-12-31.
    private static let range: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    /// A time that RFC 3339 cannot write becomes the nearest that it can.
    package init(_ time: (seconds: Int64, milliseconds: Int64)) {
        seconds = min(max(time.seconds, Self.range.lowerBound), Self.range.upperBound)
        milliseconds = min(max(time.milliseconds, 0), 999)
    }

    /// Since 1970.
    package var totalMilliseconds: Int64 { seconds * 1000 + milliseconds }

    /// RFC 3339 in UTC: `2026-01-01T00:00:00.000Z`.
    package var text: String {
        String(unsafeUninitializedCapacity: Self.textBytes) { output in
            write(to: UnsafeMutableRawBufferPointer(output))
            return Self.textBytes
        }
    }

    /// The length of ``text``.
    package static let textBytes = 24

    /// Writes ``text`` to `output`, which has room for it.
    package func write(to output: UnsafeMutableRawBufferPointer) {
        let second = ((seconds % 86400) + 86400) % 86400
        let (year, month, day) = Self.date((seconds - second) / 86400)
        Self.put(year, 4, UInt8(ascii: "-"), at: 0, output)
        Self.put(month, 2, UInt8(ascii: "-"), at: 5, output)
        Self.put(day, 2, UInt8(ascii: "T"), at: 8, output)
        Self.put(second / 3600, 2, UInt8(ascii: ":"), at: 11, output)
        Self.put(second / 60 % 60, 2, UInt8(ascii: ":"), at: 14, output)
        Self.put(second % 60, 2, UInt8(ascii: "."), at: 17, output)
        writeMilliseconds(to: output)
    }

    /// Replaces the milliseconds of another time of the same second, whose ``text`` is in `output`.
    package func writeMilliseconds(to output: UnsafeMutableRawBufferPointer) {
        Self.put(milliseconds, 3, UInt8(ascii: "Z"), at: 20, output)
    }

    /// `digits` digits of `value`, and `end`.
    private static func put(
        _ value: Int64, _ digits: Int, _ end: UInt8, at offset: Int, _ output: UnsafeMutableRawBufferPointer
    ) {
        var rest = value
        for place in stride(from: offset + digits - 1, through: offset, by: -1) {
            output[place] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        output[offset + digits] = end
    }

    /// Nil unless the text is what ``text`` writes.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 24 else { return nil }
        func number(_ range: Range<Int>) -> Int64 {
            bytes[range].reduce(0) { $0 * 10 + Int64($1) - 0x30 }
        }
        let days = Self.days(year: number(0..<4), month: number(5..<7), day: number(8..<10))
        self.init(
            (
                days * 86400 + number(11..<13) * 3600 + number(14..<16) * 60 + number(17..<19),
                number(20..<23)
            ))
        // Another date, time or character does not come out again.
        guard self.text.utf8.elementsEqual(bytes) else { return nil }
    }

    /// `2026-01-01 01:00:00` in the time zone of the process.
    package var local: String {
        var time = time_t(seconds)
        var parts = tm()
        localtime_r(&time, &parts)
        var buffer = [CChar](repeating: 0, count: 32)
        let count = strftime(&buffer, buffer.count, "%Y-%m-%d %H:%M:%S", &parts)
        return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    // MARK: The proleptic Gregorian calendar

    /// Years begin in March here, so that the leap day is the last; 400 of them have 146,097 days.
    private static func date(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let day = shifted - era * 146_097
        let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let month = (5 * dayOfYear + 2) / 153
        return (
            year + era * 400 + (month >= 10 ? 1 : 0), month + (month < 10 ? 3 : -9),
            dayOfYear - (153 * month + 2) / 5 + 1
        )
    }

    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
