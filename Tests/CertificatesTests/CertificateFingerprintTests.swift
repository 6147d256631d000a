// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignCertificates

@Suite struct CertificateFingerprintTests {
    private static let digits = String(repeating: "0aF9", count: 16)

    @Test func colonsBetweenTheDigitsAreOptional() throws {
        let bytes = Array(repeatElement([0x0A, 0xF9] as [UInt8], count: 16).joined())
        #expect(try CertificateFingerprint.parse("sha256:\(Self.digits)") == bytes)
        #expect(
            try CertificateFingerprint.parse("SHA256:" + repeatElement("0A:f9", count: 16).joined(separator: ":"))
                == bytes)
    }

    /// As `openssl x509 -fingerprint -sha256` prints it.
    @Test(arguments: ["", "sha256 Fingerprint=", "SHA256 Fingerprint="])
    func opensslsOutputIsAccepted(_ start: String) throws {
        let text = start + repeatElement("0A:F9", count: 16).joined(separator: ":")
        #expect(try CertificateFingerprint.parse(text) == Array(repeatElement([0x0A, 0xF9], count: 16).joined()))
    }

    @Test(arguments: [
        ("", "it has 0 hexadecimal digits instead of 64"),
        ("sha1:\(digits)", "it is not in hexadecimal digits, with or without sha256: before them"),
        ("sha256:", "it has 0 hexadecimal digits instead of 64"),
        ("sha256:\(digits.dropLast())", "it has 63 hexadecimal digits instead of 64"),
        ("sha256:\(digits.dropLast(2))", "it has 62 hexadecimal digits instead of 64"),
        ("sha256:\(digits)00", "it has 66 hexadecimal digits instead of 64"),
        ("sha256: \(digits)", "it has characters other than hexadecimal digits after sha256:"),
        ("sha256:\(digits.dropLast())g", "it has characters other than hexadecimal digits after sha256:"),
        ("sha256:\(digits.dropLast())\u{FF11}", "it has characters other than hexadecimal digits after sha256:"),
    ]) func anythingElseIsRefused(_ text: String, _ why: String) {
        #expect(throws: CertificateFingerprint.Fault(description: why)) { try CertificateFingerprint.parse(text) }
    }
}
