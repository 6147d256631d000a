// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignCertificates

struct ServerTrustTests {
    @Test(
        arguments: [
            (0, "1970-01-01"), (-1, "1969-12-31"), (951_782_400, "2000-02-29"), (951_868_800, "2000-03-01"),
            (1_767_225_599, "2025-12-31"), (1_767_225_600, "2026-01-01"), (4_107_542_400, "2100-03-01"),
            (253_402_300_799, "9999-12-31"), (-62_167_219_200, "0000-01-01"),
        ] as [(Int64, String)])
    func daysAreThoseOfTheCalendar(seconds: Int64, text: String) {
        #expect(CalendarDate(secondsSince1970: seconds).description == text)
    }

    @Test func noSecondIsTooFar() {
        #expect(CalendarDate(secondsSince1970: .max).description.hasSuffix("-12-04"))
        #expect(CalendarDate(secondsSince1970: .min).description.hasPrefix("-"))
    }

    @Test func reasonsReadAsASentence() throws {
        let leaf = try TestPKI.leaf("origin-expired")
        let trust = ServerTrust(chain: [leaf], reasons: [.expired(notAfter: 1_767_225_600), .hostMismatch])
        #expect(trust.description == "certificate expired 2026-01-01; certificate is for another host")
        #expect(!trust.isTrusted && trust.leaf == leaf)
        #expect(ServerTrust(chain: [leaf], reasons: []).isTrusted)
        #expect(!ServerTrust(chain: [], reasons: []).isTrusted)
    }
}
