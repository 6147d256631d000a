// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// `sha256:` and 64 hexadecimal digits, with or without colons between bytes: the SHA-256 of a certificate's DER as people and
/// programs hand it on.
package enum TrustFingerprint {
    /// What is wrong with a text, without repeating it.
    package struct Fault: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// The 32 bytes.
    package static func parse(_ text: String) throws(Fault) -> [UInt8] {
        guard text.lowercased().hasPrefix("sha256:") else { throw Fault(description: "it does not begin with sha256:") }
        let digits = text.dropFirst("sha256:".count).filter { $0 != ":" }
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
            throw Fault(description: "behind sha256: stands something else than hexadecimal digits")
        }
        guard digits.count == 64, let bytes = Hex.decode(digits) else {
            throw Fault(description: "it has \(digits.count) hexadecimal digits, a SHA-256 has 64")
        }
        return bytes
    }

    /// `sha256:` and 64 lower-case digits.
    package static func text(_ bytes: [UInt8]) -> String { "sha256:" + Hex.encode(bytes) }
}
