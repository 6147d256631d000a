// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The system's clock, read at the rim and handed inwards as a number.
enum WallClock {
    /// Since 1970, in UTC.
    static func now() -> (seconds: Int64, milliseconds: Int64) {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return (Int64(time.tv_sec), Int64(time.tv_nsec / 1_000_000))
    }

    /// IMF-fixdate (RFC 9110 §5.6.7), now.
    static func httpDate() -> String {
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

    /// A FILETIME (MS-DTYP §2.3.3): 100 ns steps since 1601.
    static func fileTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return (UInt64(time.tv_sec) + 11_644_473_600) * 10_000_000 + UInt64(time.tv_nsec / 100)
    }
}
