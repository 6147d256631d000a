// SPDX-License-Identifier: Apache-2.0

/// The time of a signature, in whole seconds.
package struct SignatureTimestamp: Equatable, Sendable {
    /// As it is signed: `20150830T123600Z`, the basic format of ISO 8601 in UTC.
    package let text: String
    /// Since 1970.
    package let seconds: Int64

    private static let zones = ["GMT", "UTC", "+0000", "-0000"]

    /// Reads that format, and that of the Date field: `Sun, 30 Aug 2015 12:36:00 GMT` (RFC 9110 §5.6.7). botocore has
    /// `-0000` in place of `GMT`.
    package init?(_ text: String) {
        let octets = Array(text.utf8)
        func number(_ range: Range<Int>) -> Int? {
            octets[range].allSatisfy(Octets.isDigit) ? Int(String(decoding: octets[range], as: UTF8.self)) : nil
        }
        let places: (year: Int, day: Int, hour: Int, step: Int)
        let month: Int?
        if octets.count == 16, octets[8] == UInt8(ascii: "T"), octets[15] == UInt8(ascii: "Z") {
            places = (0, 6, 9, 2)
            month = number(4..<6)
        } else if octets.count > 26, Self.zones.contains(String(decoding: octets[26...], as: UTF8.self)),
            [4, 7, 11, 16, 25].allSatisfy({ octets[$0] == 0x20 }),
            [19, 22].allSatisfy({ octets[$0] == UInt8(ascii: ":") })
        {
            places = (12, 5, 17, 3)
            let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            month = names.firstIndex(of: String(decoding: octets[8..<11], as: UTF8.self)).map { $0 + 1 }
        } else {
            return nil
        }
        func clock(_ index: Int) -> Int? {
            let start = places.hour + index * places.step
            return number(start..<(start + 2))
        }
        guard let year = number(places.year..<(places.year + 4)), let month, (1...12).contains(month),
            let day = number(places.day..<(places.day + 2)), (1...31).contains(day), let hour = clock(0), hour < 24,
            let minute = clock(1), minute < 60, let second = clock(2), second < 60
        else { return nil }
        func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let years = String(repeating: "0", count: 4 - String(year).utf8.count) + String(year)
        self.text =
            "\(years)\(padded(month))\(padded(day))T\(padded(hour))\(padded(minute))\(padded(second))Z"
        seconds = Int64(Self.days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
    }

    /// Days since 1970 in the Gregorian calendar. Years begin in March, so that a leap day is a year's last.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let month = (month + 9) % 12
        return 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
    }
}
