// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CountersignCertificates

/// OpenSSL's reader is the oracle.
struct PEMTextTests {
    private static let block = "-----BEGIN CERTIFICATE-----\n", end = "-----END CERTIFICATE-----\n"

    @Test(arguments: ["origin-ec", "origin-root", "client-a-root"])
    func certificatesAreWhatOpenSSLReads(_ name: String) throws {
        let text = Array("a comment\n\n".utf8) + (try TestPKI.bytes(name + ".pem")) + Array("\nanother\n".utf8)
        let read = try Certificate.readPEM(text + text).map(\.der)
        #expect(PEMText.certificates(in: text + text) == read)
    }

    @Test func theSystemsAnchorsAreWhatOpenSSLReads() throws {
        guard let data = FileManager.default.contents(atPath: "/etc/ssl/certs/ca-certificates.crt") else { return }
        let read = try Certificate.readPEM(Array(data)).map(\.der)
        #expect(PEMText.certificates(in: Array(data)) == read)
    }

    @Test(arguments: [
        ("", []), ("no block\n", []), (block + "AAEC\n" + end, [[0, 1, 2]]), (block + "AAE=\n" + end, [[0, 1]]),
        (block + "AA==\n" + end, [[0]]), (block + "AAEC\n\nAwQF\n" + end, [[0, 1, 2, 3, 4, 5]]),
        (block + "+/+/\n" + end.dropLast(), [[0xFB, 0xFF, 0xBF]]),
    ])
    func blocksOfWholeLinesAreTaken(_ text: String, certificates: [[UInt8]]) {
        #expect(PEMText.certificates(in: Array(text.utf8)) == certificates)
    }

    @Test(arguments: [
        block, block + end, block + "AAEC\n", block + "AAE\n" + end, block + "AA==\nAAEC\n" + end,
        block + "A===\n" + end,
        block + "AA=A\n" + end, block + "====\n" + end, block + "AAEC\r\n" + end, block + "AAEC \n" + end,
        block + "AAé\n" + end,
        block + "-AEC\n" + end, block + "AAEC\n-----END X509 CRL-----\n", block + "AAEC\n" + block + "AAEC\n" + end,
        "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE----- \nAAEC\n" + end, end,
        "-----BEGIN TRUSTED CERTIFICATE-----\nAAEC\n-----END TRUSTED CERTIFICATE-----\n",
        block + "Proc-Type: 4,ENCRYPTED\n\nAAEC\n" + end, block + String(repeating: "A", count: 132) + "\n" + end,
    ])
    func allOtherFormsAreLeftToOpenSSL(_ text: String) {
        #expect(PEMText.certificates(in: Array(text.utf8)) == nil)
    }
}
