// SPDX-License-Identifier: Apache-2.0

/// The dates of Expires, which servers write in many ways (RFC 6265 §5.1.1).
enum CookieDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    /// Seconds since 1970, not less than 0; nil for text that is not a date.
    static func seconds(_ text: String) -> Int64? {
        var (time, day, month, year): ([Int]?, Int?, Int?, Int?) = (nil, nil, nil, nil)
        for token in text.lowercased().utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let found = clock(token) {
                time = found
            } else if day == nil, let number = number(token, 1...2) {
                day = number
            } else if month == nil, let index = months.firstIndex(where: { token.starts(with: $0.utf8) }) {
                month = index + 1
            } else if year == nil, let number = number(token, 2...4) {
                year = number < 70 ? number + 2000 : number < 100 ? number + 1900 : number
            }
        }
        guard let time, let day, let month, let year, year >= 1601, (1...31).contains(day), time[0] < 24, time[1] < 60,
            time[2] < 60, day <= daysInMonth(month, year)
        else { return nil }
        let seconds = days(year, month, day) * 86_400 + Int64(time[0] * 3600 + time[1] * 60 + time[2])
        return max(0, seconds)
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// The number that begins the token and has as many digits as `lengths` permits.
    private static func number(_ token: some Collection<UInt8>, _ lengths: ClosedRange<Int>) -> Int? {
        let digits = token.prefix { (0x30...0x39).contains($0) }
        guard lengths.contains(digits.count) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 & 15) }
    }

    /// `12:34:56`
    private static func clock(_ token: some Collection<UInt8>) -> [Int]? {
        let parts = token.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let numbers = parts.compactMap { number($0, 1...2) }
        return numbers.count == 3 ? numbers : nil
    }

    private static func daysInMonth(_ month: Int, _ year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days from 1970-01-01 in the Gregorian calendar. Counts the years from March, so that the leap day is the last.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let (era, yearOfEra) = (shifted / 400, shifted % 400)
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return Int64(era * 146_097 + dayOfEra - 719_468)
    }
}
