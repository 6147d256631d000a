// SPDX-License-Identifier: Apache-2.0

// For the standard library's own Unicode normaliser. The public one would link all of Foundation.
@_spi(_Unicode) import Swift
import CountersignCryptography
import Synchronization

/// Basic (RFC 7617). The answer is the same for every request in a realm, so an accepted answer is sent before the next
/// challenge.
package final class BasicAuthenticator: Authenticator {
    package static let shared = BasicAuthenticator()

    private struct Weak: Sendable {
        weak var secret: Secret?
    }

    /// The encoded credentials in use, so that the answers for all sites share one copy.
    private let encoded = Mutex<[CredentialReference: [Weak]]>([:])

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
        let encoded = try Self.encodedCredentials(of: password, domain: context.domain, challenge: challenge)
        return .answer(.fixed(AuthorizationField(scheme: schemeName, token68: shared(encoded, password.reference))))
    }

    /// The secret in use that equals `secret`, if there is one.
    private func shared(_ secret: Secret, _ credential: CredentialReference) -> Secret {
        encoded.withLock { encoded in
            let inUse = (encoded[credential] ?? []).filter { $0.secret != nil }
            if let known = inUse.lazy.compactMap(\.secret).first(where: { $0 == secret }) { return known }
            encoded = encoded.filter { $0.value.contains { $0.secret != nil } }
            encoded[credential] = inUse + [Weak(secret: secret)]
            return secret
        }
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
        AuthorizationField(
            scheme: "Basic",
            token68: try encodedCredentials(of: credential, domain: domain, challenge: challenge))
    }

    private static func encodedCredentials(
        of credential: PasswordCredential, domain: String?, challenge: Challenge
    ) throws(AuthenticationError) -> Secret {
        let user = credential.qualifiedUser(domain: domain)
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw unusable("the user name contains a colon") }
        guard !user.unicodeScalars.contains(where: isControl) else {
            throw unusable("the user name contains a control character")
        }
        let wantsUTF8 = challenge.parameter("charset")?.lowercased() == "utf-8"
        return try credential.password.withBytes { password throws(AuthenticationError) in
            if password.allSatisfy({ $0 < 0x80 }), user.utf8.allSatisfy({ $0 < 0x80 }) {
                guard !password.contains(where: { isControl(Unicode.Scalar($0)) }) else { throw passwordHasControl }
                var pair = Array(user.utf8)
                pair.reserveCapacity(pair.count + 1 + password.count)
                pair.append(UInt8(ascii: ":"))
                pair.append(contentsOf: password)
                defer { pair.wipe() }
                return Base64.encodeSecret(pair)
            }
            return try encodedNormalized(user, password, wantsUTF8: wantsUTF8)
        }
    }

    /// For text beyond ASCII. The standard library normalizes strings only, so the password is briefly in ordinary
    /// memory, which is overwritten.
    private static func encodedNormalized(
        _ user: String, _ password: UnsafeRawBufferPointer, wantsUTF8: Bool
    ) throws(AuthenticationError) -> Secret {
        guard var text = String(validating: password, as: UTF8.self) else {
            throw unusable("the password is not UTF-8 text")
        }
        defer { text.wipe() }
        guard !text.unicodeScalars.contains(where: isControl) else { throw passwordHasControl }
        var pair = user
        pair.reserveCapacity(user.utf8.count + 1 + password.count)
        pair += ":"
        pair += text
        defer { pair.wipe() }
        var isLatin1 = !wantsUTF8
        var utf8: [UInt8] = []
        var latin1: [UInt8] = []
        defer {
            utf8.wipe()
            latin1.wipe()
        }
        // NFC has at most three times as many UTF-8 bytes (UAX #15, 9).
        utf8.reserveCapacity(3 * pair.utf8.count)
        latin1.reserveCapacity(3 * pair.utf8.count)
        for scalar in pair._nfc {
            utf8 += Array(UTF8.encode(scalar) ?? .init())
            isLatin1 = isLatin1 && scalar.value <= 0xFF
            latin1.append(UInt8(truncatingIfNeeded: scalar.value))
        }
        return Base64.encodeSecret(isLatin1 ? latin1 : utf8)
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control
    }

    private static var passwordHasControl: AuthenticationError { unusable("the password contains a control character") }

    private static func unusable(_ detail: String) -> AuthenticationError {
        AuthenticationError(.unusableCredential, detail)
    }
}
