// SPDX-License-Identifier: Apache-2.0

// For the standard library's own Unicode normaliser. The public one would link all of Foundation.
@_spi(_Unicode) import Swift
import CountersignCryptography

/// How a user name and a password beyond ASCII become bytes, unless a challenge says it (RFC 7617 §2.1, RFC 7616 §4).
package enum CredentialCharset: String, CaseIterable, Sendable {
    /// As browsers do.
    case utf8 = "utf-8"
    /// ISO 8859-1, for old servers.
    case latin1

    /// The one that `challenge` requires, otherwise this one.
    func required(by challenge: Challenge) -> CredentialCharset {
        challenge.parameter("charset")?.lowercased() == "utf-8" ? .utf8 : self
    }
}

/// Text that Basic and Digest join with colons: a user name, a realm, a password.
enum CredentialText {
    /// The user name, qualified by `domain` if it has none, in NFC. Throws `unusableCredential` if it contains a colon
    /// or a control character.
    static func user(
        of credential: PasswordCredential, domain: String?
    ) throws(AuthenticationError) -> String {
        let user = credential.qualifiedUser(domain: domain)
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw unusable("the user name contains a colon") }
        guard !user.unicodeScalars.contains(where: isControl) else {
            throw unusable("the user name contains a control character")
        }
        return user
    }

    /// `text` in NFC.
    static func bytes(_ text: String, _ charset: CredentialCharset) throws(AuthenticationError) -> [UInt8] {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return Array(text.utf8) }
        var bytes: [UInt8] = []
        // NFC has at most three times as many UTF-8 bytes (UAX #15, 9).
        bytes.reserveCapacity(3 * text.utf8.count)
        for scalar in text._nfc {
            switch charset {
            case .utf8:
                if let octets = UTF8.encode(scalar) { bytes.append(contentsOf: octets) }
            case .latin1:
                guard let octet = UInt8(exactly: scalar.value) else {
                    bytes.wipe()
                    throw unusable("the user name or the password cannot be written in ISO 8859-1 (charset=latin1)")
                }
                bytes.append(octet)
            }
        }
        return bytes
    }

    /// Passes `prefix`, which ends with a colon, and the password to `body`. Throws `unusableCredential` if the
    /// password contains a control character, or is not text.
    ///
    /// The standard library normalizes strings only, so a password beyond ASCII is briefly in ordinary memory, which is
    /// overwritten.
    static func withPassword<Result>(
        of credential: PasswordCredential, after prefix: [UInt8], _ charset: CredentialCharset,
        _ body: ([UInt8]) -> Result
    ) throws(AuthenticationError) -> Result {
        try credential.password.withBytes { password throws(AuthenticationError) in
            var joined = prefix
            defer { joined.wipe() }
            if password.allSatisfy({ $0 < 0x80 }) {
                guard !password.contains(where: { isControl(Unicode.Scalar($0)) }) else { throw passwordHasControl }
                joined.reserveCapacity(prefix.count + password.count)
                joined.append(contentsOf: password)
                return body(joined)
            }
            guard var text = String(validating: password, as: UTF8.self) else {
                throw unusable("the password is not UTF-8 text")
            }
            defer { text.wipe() }
            guard !text.unicodeScalars.contains(where: isControl) else { throw passwordHasControl }
            var bytes = try bytes(text, charset)
            defer { bytes.wipe() }
            joined.reserveCapacity(prefix.count + bytes.count)
            joined.append(contentsOf: bytes)
            return body(joined)
        }
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control
    }

    private static var passwordHasControl: AuthenticationError { unusable("the password contains a control character") }

    private static func unusable(_ detail: String) -> AuthenticationError {
        AuthenticationError(.unusableCredential, detail)
    }
}
