// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A client identity's private key that stays in a PKCS#11 token: how to reach it.
package struct TokenKey: Equatable, Sendable {
    /// The identity's name.
    package let name: String
    /// The `pkcs11:` URI (RFC 7512), which never contains a PIN.
    package let uri: String
    package let pin: Secret
    /// SHA-256 of the leaf certificate's DER, 32 bytes: says which chain belongs to the key.
    package let leafSHA256: [UInt8]
    /// The token has refused the PIN. It is not sent again, because a token locks itself after a few wrong PINs.
    package internal(set) var isPINRefused = false

    package init(name: String, uri: String, pin: Secret, leafSHA256: [UInt8]) {
        self.name = name
        self.uri = uri
        self.pin = pin
        self.leafSHA256 = leafSHA256
    }

    /// A key whose certificate has yet to be issued.
    package init(name: String, uri: String, pin: Secret) {
        self.init(name: name, uri: uri, pin: pin, leafSHA256: [UInt8](repeating: 0, count: VaultLimits.digestBytes))
    }

    /// The same key with another certificate.
    package func certified(by leafSHA256: [UInt8]) -> TokenKey {
        var key = TokenKey(name: name, uri: uri, pin: pin, leafSHA256: leafSHA256)
        key.isPINRefused = isPINRefused
        return key
    }

    /// Why the key cannot be stored, name and PIN not considered; nil if it can.
    var fault: String? {
        let isLine =
            (1...VaultLimits.tokenURIBytes).contains(uri.utf8.count)
            && !uri.utf8.contains { $0 < 0x20 || $0 == 0x7F }
        guard isLine else { return "a token's URI that is not one line of text" }
        guard leafSHA256.count == VaultLimits.digestBytes else {
            return "a SHA-256 has 32 bytes, not \(leafSHA256.count)"
        }
        return nil
    }
}
