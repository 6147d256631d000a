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

    /// The current time as a FILETIME (MS-DTYP §2.3.3): 100 ns steps since 1601.
    package static func fileTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return (UInt64(time.tv_sec) + 11_644_473_600) * 10_000_000 + UInt64(time.tv_nsec / 100)
    }
}
