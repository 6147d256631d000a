// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The SHA-256 of a certificate's DER as text: `sha256:` and 64 hexadecimal digits, optionally with colons between
/// them. Parsing also accepts the digits alone, and the output of `openssl x509 -fingerprint -sha256`.
package enum CertificateFingerprint {
    /// Why a text is not a fingerprint. Never contains the text itself.
    package struct Fault: Error, Equatable, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// The 32 bytes.
    package static func parse(_ text: String) throws(Fault) -> [UInt8] {
        let prefix = ["sha256:", "sha256 fingerprint="].first { text.lowercased().hasPrefix($0) } ?? ""
        let digits = text.dropFirst(prefix.count).filter { $0 != ":" }
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
            throw Fault(
                description: prefix.isEmpty
                    ? "it is not in hexadecimal digits, with or without sha256: before them"
                    : "it has characters other than hexadecimal digits after sha256:")
        }
        guard digits.count == 64, let bytes = Hex.decode(digits) else {
            throw Fault(description: "it has \(digits.count) hexadecimal digits instead of 64")
        }
        return bytes
    }

    /// `sha256:` and 64 lower-case digits.
    package static func text(_ bytes: [UInt8]) -> String { "sha256:" + Hex.encode(bytes) }
}
