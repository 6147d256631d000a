// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The value of an `Authorization` field that we made (RFC 9110 §11.6.2): a scheme and a token68, which is a secret.
package struct AuthorizationField: Equatable, Sendable {
    /// `Basic`, `NTLM` or `Negotiate`.
    package let scheme: String
    private let credentials: Secret

    /// `credentials` are sent in Base64.
    package init(scheme: String, credentials: some Collection<UInt8>) {
        self.scheme = scheme
        self.credentials = Secret(utf8: Base64.encode(credentials))
    }

    /// What stands after `Authorization: `. The string is an ordinary one: keep it short-lived.
    package var fieldValue: String {
        credentials.withBytes { credentials in
            String(unsafeUninitializedCapacity: scheme.utf8.count + 1 + credentials.count) { room in
                var end = room.initialize(fromContentsOf: scheme.utf8)
                end = room[end...].initialize(fromContentsOf: CollectionOfOne(UInt8(ascii: " ")))
                return room[end...].initialize(fromContentsOf: credentials)
            }
        }
    }
}

extension AuthorizationField: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "\(scheme) (secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: ["scheme": scheme]) }
}
