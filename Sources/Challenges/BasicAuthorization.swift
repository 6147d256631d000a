// SPDX-License-Identifier: Apache-2.0

// The standard library's own normaliser; the public one would bring all of Foundation.
@_spi(_Unicode) import Swift
import CountersignCryptography

/// Answers a Basic challenge (RFC 7617 §2).
package enum BasicAuthorization {
    /// The `Authorization` that answers `challenge` with `credential`; `domain` goes before a bare user name (`ACME\jdoe`).
    ///
    /// User name and password are sent in NFC: as UTF-8 where the challenge says `charset="UTF-8"` (§2.1), else as
    /// ISO 8859-1 where that can spell both, else as UTF-8. Throws `unusableCredential`: a colon in the user name, a control
    /// character, a password that is not text.
    package static func authorization(
        for credential: PasswordCredential, domain: String?, challenge: Challenge
    ) throws(AuthenticationError) -> AuthorizationField {
        let user = qualified(credential.user, domain: domain)
        guard let password = credential.password.utf8Text else { throw unusable("the password is not UTF-8 text") }
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw unusable("the user name contains a colon") }
        guard !hasControl(user) else { throw unusable("the user name contains a control character") }
        guard !hasControl(password) else { throw unusable("the password contains a control character") }

        let text = "\(user):\(password)"._nfc.reduce(into: String.UnicodeScalarView()) { $0.append($1) }
        let wantsUTF8 = challenge.parameter("charset")?.lowercased() == "utf-8"
        var bytes: [UInt8] = []
        if !wantsUTF8, text.allSatisfy({ $0.value <= 0xFF }) {
            bytes = text.map { UInt8(truncatingIfNeeded: $0.value) }
        } else {
            bytes = Array(String(text).utf8)
        }
        return AuthorizationField(scheme: "Basic", credentials: bytes)
    }

    /// `user` with `domain` before it, where it is bare and there is one.
    package static func qualified(_ user: String, domain: String?) -> String {
        guard let domain, !domain.isEmpty, !user.contains("\\"), !user.contains("@") else { return user }
        return "\(domain)\\\(user)"
    }

    private static func hasControl(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    private static func unusable(_ detail: String) -> AuthenticationError { AuthenticationError(.unusableCredential, detail) }
}
