// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth

/// The enrolled identity whose key signs the client's assertions, as a profile names it.
package struct ClientIdentity: Sendable, Equatable {
    /// Its name in the vault.
    package let name: String
    /// The `kid` of the assertions; nil for none.
    package let keyIdentifier: String?

    private static let nameKey = "client_identity"
    private static let identifierKey = "client_key_id"
    /// In bytes.
    private static let maximumTextBytes = 256

    /// Nil for a method without a key. Throws ``JSONError`` if the keys of the profile and the method do not fit.
    init?(_ reader: inout JSONReader, for method: ClientAuthenticationMethod) throws {
        let (nameKey, identifierKey) = (Self.nameKey, Self.identifierKey)
        guard method == .privateKey else {
            for key in [nameKey, identifierKey] where reader.valueIfPresent(key) != nil {
                throw reader.invalid(
                    key, "is for \"token_endpoint_auth_method\": \"\(ClientAuthenticationMethod.privateKey.rawValue)\"")
            }
            return nil
        }
        name = try reader.string(nameKey)
        keyIdentifier = try reader.stringIfPresent(identifierKey)
        for (key, text) in [(nameKey, name), (identifierKey, keyIdentifier ?? "-")] {
            guard (1...Self.maximumTextBytes).contains(text.utf8.count),
                text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { throw reader.invalid(key, "is empty, too long, or has a character other than printable ASCII") }
        }
    }
}
