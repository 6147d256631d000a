// SPDX-License-Identifier: Apache-2.0

// For the standard library's own Unicode normaliser. The public one would link all of Foundation.
@_spi(_Unicode) import Swift
import CountersignCryptography

/// Basic (RFC 7617). The answer is the same for every request in a realm, so an accepted answer is sent before the next
/// challenge.
package final class BasicAuthenticator: Authenticator {
    package static let shared = BasicAuthenticator()

    package var schemeName: String { "Basic" }
    package var scheme: AuthenticationScheme { .basic }

    /// A challenge without a realm is invalid (RFC 7617 §2).
    package func canAnswer(_ challenge: Challenge) -> Bool { challenge.realm != nil }

    package func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? {
        do throws(AuthenticationError) {
            _ = try reply(to: Challenge(scheme: schemeName), with: credential, context)
            return nil
        } catch {
            return error.detail
        }
    }

    package func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        guard case .password(let password) = credential else {
            throw AuthenticationError(.unusableCredential, "Basic needs a user name and password")
        }
        return .answer(.fixed(try Self.field(for: password, domain: context.domain, challenge: challenge)))
    }

    package func preemption(after answer: Answer) -> Preemption { .answer(answer) }

    /// The field that answers `challenge` with `credential`. A user name without a domain gets `domain` (`ACME\jdoe`).
    ///
    /// The user name and password are sent in NFC: as UTF-8 if the challenge has `charset="UTF-8"` (§2.1), otherwise as
    /// ISO 8859-1 if it can encode both, otherwise as UTF-8. Throws `unusableCredential` if the user name contains a
    /// colon, if either contains a control character, or if the password is not text.
    package static func field(
        for credential: PasswordCredential, domain: String?, challenge: Challenge
    ) throws(AuthenticationError) -> AuthorizationField {
        let user = credential.qualifiedUser(domain: domain)
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

    private static func hasControl(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    private static func unusable(_ detail: String) -> AuthenticationError {
        AuthenticationError(.unusableCredential, detail)
    }
}
