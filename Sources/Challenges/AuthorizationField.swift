// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The value of an `Authorization` or `Proxy-Authorization` field (RFC 9110 §11.6.2) that this process computed. It is
/// secret, and redacted when printed.
///
/// A class, because it is copied many times for each request, and each copy of a structure counts two references.
package final class AuthorizationField: Sendable {
    package let scheme: String
    /// Everything after the scheme.
    private let credentials: Secret
    /// The value of the field ``DPoPProof/field``, which goes with it; nil for a scheme without one.
    package let proof: Secret?

    /// A scheme and `credentials` encoded as a token68 in Base64: Basic, NTLM, Negotiate.
    package init(scheme: String, credentials: some Collection<UInt8>) {
        self.scheme = scheme
        self.credentials = Base64.encodeSecret(credentials)
        proof = nil
    }

    /// A scheme and a token68 that is sent unchanged: Bearer, and with a proof DPoP.
    package init(scheme: String, token68: Secret, proof: Secret? = nil) {
        self.scheme = scheme
        self.proof = proof
        credentials = token68
    }

    /// A scheme and `parameterBytes` bytes of parameters for one request, which `write` initialises: Digest.
    init(scheme: String, parameterBytes: Int, _ write: (UnsafeMutableRawBufferPointer) -> Void) {
        self.scheme = scheme
        credentials = Secret(count: parameterBytes, isBrief: true, fill: write)
        proof = nil
    }

    /// The value of the parameter with this name, ignoring case; also nil if the field has a token68.
    package func parameter(_ name: String) -> String? { parsed?.parameter(name) }

    /// The scheme and the parameters. Credentials have the syntax of a challenge (RFC 9110 §11.4).
    var parsed: Challenge? {
        var octets: [UInt8] = []
        forEachPart { octets.append(contentsOf: $0) }
        return (try? ChallengeParser.parse(fields: [ChallengeField(octets: octets)]))?.first
    }

    /// Whether the token68 encodes octets beyond ASCII.
    var hasTextBeyondASCII: Bool {
        guard let text = credentials.utf8Text, let decoded = Base64.decode(text) else { return false }
        return Secret(decoded).withBytes { $0.contains { $0 >= 0x80 } }
    }

    /// The number of bytes in the field's value.
    package var byteCount: Int { scheme.utf8.count + 1 + credentials.count }

    /// Passes the field's value to `write` in parts, without a copy.
    package func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
        var scheme = scheme
        scheme.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        withUnsafeBytes(of: UInt8(ascii: " ")) { write($0) }
        credentials.withBytes { write($0) }
    }

    /// The field's value. The string is not wiped from memory, so keep it short-lived.
    package var fieldValue: String {
        credentials.withBytes { credentials in
            String(unsafeUninitializedCapacity: scheme.utf8.count + 1 + credentials.count) { buffer in
                var end = buffer.initialize(fromContentsOf: scheme.utf8)
                end = buffer[end...].initialize(fromContentsOf: CollectionOfOne(UInt8(ascii: " ")))
                return buffer[end...].initialize(fromContentsOf: credentials)
            }
        }
    }
}

extension [UInt8] {
    /// Appends `value` as a quoted-string (RFC 9110 §5.6.4).
    mutating func appendQuoted(_ value: some Collection<UInt8>) {
        let quote = UInt8(ascii: "\"")
        let backslash = UInt8(ascii: "\\")
        append(quote)
        if value.contains(where: { $0 == quote || $0 == backslash }) {
            for octet in value {
                if octet == quote || octet == backslash { append(backslash) }
                append(octet)
            }
        } else {
            append(contentsOf: value)
        }
        append(quote)
    }
}

extension AuthorizationField: Equatable {
    package static func == (left: AuthorizationField, right: AuthorizationField) -> Bool {
        left === right
            || (left.scheme == right.scheme && left.credentials == right.credentials && left.proof == right.proof)
    }
}

extension AuthorizationField: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(scheme) (secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["scheme": scheme]) }
}
