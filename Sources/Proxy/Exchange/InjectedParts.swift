// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignUpstream
import Glibc

/// The part of a request that the token changes.
struct Injected {
    var fields: [AddedField] = []
    var cookie: InjectedCookie?
    /// The whole target.
    var target: ArraySlice<UInt8>?
    /// The names of the client's fields that are left out.
    var omitted: [String] = []
}

/// Why a token is not sent.
struct WithheldInjection: Error {
    let reason: Refusal

    init(_ reason: Refusal) { self.reason = reason }

    init(_ cause: Refusal.Cause, _ text: String) { reason = Refusal(cause, text) }
}

/// What is put into a request.
enum InjectedSecret {
    case token(TokenCredential)
    case keys(EnrolledKeys)

    var reference: CredentialReference {
        switch self {
        case .token(let token): token.reference
        case .keys(let keys): keys.reference
        }
    }
}

/// Keys that sign the request: enrolled in one record, or as a user name and password.
struct EnrolledKeys {
    let accessKeyID: String
    let secret: Secret
    let sessionToken: Secret?
    let reference: CredentialReference

    init(_ credential: PasswordCredential) {
        (accessKeyID, secret, sessionToken) = (credential.user, credential.password, nil)
        reference = credential.reference
    }

    init(_ credential: AWSCredential) {
        (accessKeyID, secret) = (credential.keys.accessKeyID, credential.keys.secret)
        sessionToken = credential.keys.sessionToken
        reference = credential.reference
    }
}

/// A credential that went out with a request, or has signed it, and what its response needs.
final class SentInjection {
    let credential: CredentialReference
    /// The token that the response must not contain; nil if it is not looked for.
    let redacted: Secret?
    /// Replaces it.
    var redactor: SecretRedactor?

    init(_ secret: InjectedSecret, isRedacted: Bool) {
        credential = secret.reference
        if case .token(let token) = secret, isRedacted {
            redacted = token.token
            redactor = SecretRedactor(token.token)
        } else {
            redacted = nil
        }
    }
}

/// A field value with a token in it.
struct InjectedField: SecretFieldValue {
    let prefix: String
    let secret: Secret
    let suffix: String

    var byteCount: Int { prefix.utf8.count + secret.count + suffix.utf8.count }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        var prefix = prefix
        var suffix = suffix
        prefix.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        secret.withBytes { write($0) }
        suffix.withUTF8 { write(UnsafeRawBufferPointer($0)) }
    }
}

/// `Basic` with the Base64 of a text that has a token in it. Both are wiped with the request.
struct InjectedBasic: SecretFieldValue {
    private let field: AuthorizationField

    init(prefix: String, _ secret: Secret, suffix: String) {
        let parts = InjectedField(prefix: prefix, secret: secret, suffix: suffix)
        let credentials = Secret(count: parts.byteCount) { room in
            var offset = 0
            parts.forEachPart { part in
                UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: part)
                offset += part.count
            }
        }
        field = credentials.withBytes { AuthorizationField(scheme: "Basic", credentials: $0) }
    }

    var byteCount: Int { field.byteCount }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) { field.forEachPart(write) }
}

/// The value of a Cookie field: other cookies, then one with a token.
struct InjectedCookie: SecretFieldValue {
    /// The cookies before it; nil for none.
    var others: (any SecretFieldValue)?
    let name: String
    let secret: Secret

    var byteCount: Int { (others?.byteCount ?? 0) + name.utf8.count + secret.count + 3 }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        if let others, others.byteCount > 0 {
            others.forEachPart(write)
            ("; " as StaticString).withUTF8Buffer { write(UnsafeRawBufferPointer($0)) }
        }
        var start = "\(name)="
        start.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        secret.withBytes { write($0) }
    }
}

struct AcceptedCodings: SecretFieldValue {
    private static let value: StaticString = "identity"

    var byteCount: Int { Self.value.utf8CodeUnitCount }

    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        Self.value.withUTF8Buffer { write(UnsafeRawBufferPointer($0)) }
    }
}

extension Injected {
    /// Overwrites the target with the token, in copies of it, too.
    func wipe() {
        target?.withUnsafeBytes { octets in
            guard let start = octets.baseAddress else { return }
            explicit_bzero(UnsafeMutableRawPointer(mutating: start), octets.count)
        }
    }
}
