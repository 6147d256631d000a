// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignVault

@Suite struct KeyFileTextTests {
    private static let digits = String(repeating: "0aF9", count: 16)

    private func decode(_ text: String) throws -> [Secret] {
        try Array(text.utf8).withUnsafeBytes { try KeyFileText.decode($0) }
    }

    @Test func keysComeBack() throws {
        let keys = [Randomness.secret(32), Randomness.secret(32)]
        for count in 1...2 {
            let text = KeyFileText.encode(Array(keys.prefix(count)))
            #expect(try text.withBytes { try KeyFileText.decode($0) } == Array(keys.prefix(count)))
        }
    }

    @Test func commentsMayBeEdited() throws {
        let key = Secret([UInt8](repeating: 0, count: 16).flatMap { _ in [0x0A, 0xF9] as [UInt8] })
        for text in [
            "\(Self.digits)", "\(Self.digits)\n", "# a\r\n\r\n\(Self.digits)\r\n# b", "\n\n\(Self.digits)\n\n",
        ] {
            #expect(try decode(text) == [key])
        }
    }

    @Test(arguments: [
        "", "# only a comment\n", "\(digits)0", String(digits.dropLast()), "\(digits.dropLast())g", " \(digits)",
        "\(digits) ", "\(digits)\n\(digits)\n\(digits)\n", "\(digits)\nx", "\u{FEFF}\(digits)",
    ])
    func anythingElseIsRefused(text: String) throws {
        #expect(try code { _ = try decode(text) } == .keyFileInvalid)
    }
}
