// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The value of an `Authorization` or `Proxy-Authorization` field (RFC 9110 §11.6.2) that this process computed. It is
/// secret, and redacted when printed.
package struct AuthorizationField: Equatable, Sendable {
    /// One parameter, in the form in which it is written.
    package struct Parameter: Equatable, Sendable {
        package let name: String
        package let value: String
        /// Whether the value is written as a quoted-string. Otherwise it must be a token (RFC 9110 §5.6).
        package let isQuoted: Bool

        package init(_ name: String, _ value: String, isQuoted: Bool) {
            self.name = name
            self.value = value
            self.isQuoted = isQuoted
        }

        fileprivate var text: String {
            guard isQuoted else { return "\(name)=\(value)" }
            let escaped = value.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] }
            return "\(name)=\"\(String(escaped))\""
        }
    }

    package let scheme: String
    /// The parameters in order, if the field was created from parameters.
    package let parameters: [Parameter]
    /// Everything after the scheme.
    private let credentials: Secret

    /// A scheme and `credentials` encoded as a token68 in Base64: Basic, NTLM, Negotiate.
    package init(scheme: String, credentials: some Collection<UInt8>) {
        self.scheme = scheme
        parameters = []
        self.credentials = Base64.encodeSecret(credentials)
    }

    /// A scheme and a token68 that is sent unchanged: Bearer.
    package init(scheme: String, token68: Secret) {
        self.scheme = scheme
        parameters = []
        credentials = token68
    }

    /// A scheme and parameters: Digest.
    package init(scheme: String, parameters: [Parameter]) {
        self.scheme = scheme
        self.parameters = parameters
        credentials = Secret(utf8: parameters.map(\.text).joined(separator: ", "))
    }

    /// The value of the parameter with this name, ignoring case.
    package func parameter(_ name: String) -> String? {
        parameters.first { $0.name.lowercased() == name.lowercased() }?.value
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

extension AuthorizationField: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(scheme) (secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["scheme": scheme]) }
}
