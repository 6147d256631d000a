// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Basic (RFC 7617). The answer is the same for every request in a realm, so an accepted answer is sent before the next
/// challenge. A challenge without a realm is invalid (§2), but servers send it; it has a space of its own.
package final class BasicAuthenticator: Authenticator {
    package static let shared = BasicAuthenticator()

    package var schemeName: String { "Basic" }
    package var scheme: AuthenticationScheme { .basic }
    package var sendsPassword: Bool { true }

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
        let password = try credential.password(for: name)
        let encoded = try Self.encodedCredentials(
            of: password, domain: context.domain, charset: context.charset, challenge: challenge)
        return .answer(.fixed(AuthorizationField(scheme: schemeName, token68: password.derived.shared(encoded))))
    }

    /// A challenge that is cut before its realm may be for any, and a wrong password must not be sent twice.
    package func isAsked(again answered: Challenge, by challenges: [Challenge]) -> Bool {
        challenges.contains {
            $0.isOf(schemeName) && ($0.realm == answered.realm || $0.isCut && $0.realm == nil)
        }
    }

    package func preemption(after answer: Answer) -> Preemption { .answer(answer) }

    /// The same octets would be rejected again. Only another charset makes others of them (§2.1).
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict {
        guard repeated.isUnasked, case .fixed(let field) = repeated.answer, field.hasTextBeyondASCII else {
            return .rejected
        }
        func charset(_ challenge: Challenge) -> CredentialCharset { CredentialCharset.latin1.required(by: challenge) }
        let charsets = repeated.challenges.filter { $0.isOf(schemeName) && $0.realm == repeated.answered.realm }
            .map(charset)
        let isOther = !charsets.isEmpty && !charsets.contains(charset(repeated.answered))
        return isOther ? .asksAnew(isStale: false) : .rejected
    }

    /// The field that answers `challenge` with `credential`. A user name without a domain gets `domain` (`ACME\jdoe`).
    ///
    /// The user name and password are sent in NFC: as UTF-8 if the challenge has `charset="UTF-8"` (§2.1), otherwise in
    /// `charset`. Throws `unusableCredential` if the user name contains a colon, if either contains a control
    /// character, if the password is not text, or if `charset` cannot encode both.
    package static func field(
        for credential: PasswordCredential, domain: String?, charset: CredentialCharset = .utf8, challenge: Challenge
    ) throws(AuthenticationError) -> AuthorizationField {
        AuthorizationField(
            scheme: "Basic",
            token68: try encodedCredentials(of: credential, domain: domain, charset: charset, challenge: challenge))
    }

    private static func encodedCredentials(
        of credential: PasswordCredential, domain: String?, charset: CredentialCharset, challenge: Challenge
    ) throws(AuthenticationError) -> Secret {
        let charset = charset.required(by: challenge)
        let user = try CredentialText.user(of: credential, domain: domain)
        let prefix = try CredentialText.bytes(user, charset) + [UInt8(ascii: ":")]
        return try CredentialText.withPassword(of: credential, after: prefix, charset) { Base64.encodeSecret($0) }
    }
}
