// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignAddresses

@Suite struct InternationalLabelTests {
    /// Compares the `idna` package's table for RFC 5892 with the property derived from Swift's character properties,
    /// for every scalar. A character that is unassigned in one of the two Unicode versions may differ, and is then an
    /// error.
    @Test func everyCodePointHasTheDerivedPropertyOfTheIdnaPackage() {
        var expected: [UInt32: InternationalLabel.DerivedProperty] = [:]
        for row in Fixture.rows("idna-codepoints.tsv") {
            guard let low = UInt32(row[0], radix: 16), let high = UInt32(row[1], radix: 16) else { continue }
            for value in low...high { expected[value] = row[2] == "PVALID" ? .valid : .contextual }
        }
        #expect(expected.count > 120_000)
        var differences: [String] = []
        for value in UInt32(0x80)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let derived = InternationalLabel.derivedProperty(of: scalar)
            guard derived != expected[value, default: .disallowed] else { continue }
            guard scalar.properties.age == nil, derived == .disallowed else {
                differences.append(String(value, radix: 16))
                continue
            }
        }
        #expect(differences == [])
    }

    @Test(arguments: [
        ("אב.example", true), ("א1.example", true), ("א1.1a", false), ("a.1א", false), ("אב.1a.example", false),
        ("۱۲۳.ایران", false), ("אב.a1.example", true), ("אב.a-b.x", true), ("1a.example", true),
    ])
    func oneLabelFromRightToLeftBindsTheWholeName(_ name: String, _ isAccepted: Bool) {
        #expect(((try? HostName(canonicalizing: name)) != nil) == isAccepted)
    }

    @Test func aPunycodeLabelIsBoundByTheDirectionRuleToo() throws {
        let hebrew = try HostName(canonicalizing: "אב.example").text
        #expect(hebrew.hasPrefix("xn--"))
        #expect(throws: HostNameError.self) { try HostName(canonicalizing: "1a.\(hebrew)") }
    }

    @Test func aLabelsLengthIsThatOfItsEncodedForm() {
        let fits = String(repeating: "ü", count: 50)
        #expect((try? HostName(canonicalizing: "\(fits).x"))?.text.utf8.count ?? 0 <= 65)
        #expect(throws: HostNameError(.labelTooLong, "")) {
            try HostName(canonicalizing: String(repeating: "ü", count: 64) + ".x")
        }
    }
}
