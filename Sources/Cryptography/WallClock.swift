// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The system clock and the date formats of the protocols. Pure modules take the time as an argument instead.
package enum WallClock {
    /// The time since 1970 in UTC.
    package static func now() -> (seconds: Int64, milliseconds: Int64) {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return (Int64(time.tv_sec), Int64(time.tv_nsec / 1_000_000))
    }

    /// The current time as an IMF-fixdate (RFC 9110 §5.6.7).
    package static func httpDate() -> String {
        var seconds = time_t(now().seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
        return
            "\(days[Int(parts.tm_wday)]), \(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }

    /// RFC 3339 in UTC: `2026-01-01T00:00:00Z`. `seconds` counts from 1970.
    package static func rfc3339(_ seconds: Int64) -> String {
        var seconds = time_t(seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ number: some BinaryInteger, _ width: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        let date = "\(padded(Int(parts.tm_year) + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
        return "\(date)T\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))Z"
    }

    /// The seconds since 1970 of a time in the form of RFC 3339 §5.6, such as `2026-01-01T00:00:00Z`, with a fraction
    /// that is dropped, or with an offset from UTC. Nil for anything else, leap seconds among it.
    package static func seconds(rfc3339 text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard (20...40).contains(bytes.count) else { return nil }
        func number(_ start: Int, _ count: Int, _ range: ClosedRange<Int32>) -> Int32? {
            let digits = bytes[start..<(start + count)]
            guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            let value = digits.reduce(Int32(0)) { $0 * 10 + Int32($1 - 0x30) }
            return range.contains(value) ? value : nil
        }
        guard let year = number(0, 4, 1970...9999), bytes[4] == UInt8(ascii: "-"), let month = number(5, 2, 1...12),
            bytes[7] == UInt8(ascii: "-"), let day = number(8, 2, 1...31), bytes[10] | 0x20 == UInt8(ascii: "t"),
            let hour = number(11, 2, 0...23), bytes[13] == UInt8(ascii: ":"), let minute = number(14, 2, 0...59),
            bytes[16] == UInt8(ascii: ":"), let second = number(17, 2, 0...59)
        else { return nil }
        var rest = bytes[19...]
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard !fraction.isEmpty else { return nil }
            rest = rest[fraction.endIndex...]
        }
        var offset: Int64 = 0
        if rest.count == 6, rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") {
            let start = rest.startIndex
            guard let hours = number(start + 1, 2, 0...23), bytes[start + 3] == UInt8(ascii: ":"),
                let minutes = number(start + 4, 2, 0...59)
            else { return nil }
            offset = Int64(hours * 60 + minutes) * (rest.first == UInt8(ascii: "+") ? 60 : -60)
        } else {
            guard rest.count == 1, rest.first.map({ $0 | 0x20 }) == UInt8(ascii: "z") else { return nil }
        }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
        let seconds = timegm(&parts)
        // `timegm` takes the 31st of April for the 1st of May.
        return parts.tm_mday == day ? Int64(seconds) - offset : nil
    }

    /// The current time as a FILETIME (MS-DTYP §2.3.3): 100 ns steps since 1601.
    package static func fileTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return (UInt64(time.tv_sec) + 11_644_473_600) * 10_000_000 + UInt64(time.tv_nsec / 100)
    }
}
