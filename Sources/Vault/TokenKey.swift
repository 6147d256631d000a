// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Where the private key of a client identity lies, when it stays in a PKCS#11 token.
package struct TokenKey: Equatable, Sendable {
    /// The identity's name.
    package let name: String
    /// The `pkcs11:` URI (RFC 7512), which holds no PIN.
    package let uri: String
    package let pin: Secret
    /// SHA-256 of the leaf certificate's DER, 32 bytes: ties the key to its chain.
    package let leafSHA256: [UInt8]
    /// The token has refused the PIN. A token locks itself after a few of those, so that it is not shown again.
    package fileprivate(set) var isPINRefused = false

    package init(name: String, uri: String, pin: Secret, leafSHA256: [UInt8]) {
        self.name = name
        self.uri = uri
        self.pin = pin
        self.leafSHA256 = leafSHA256
    }

    /// What no record may hold, its name and its PIN left out; nil where nothing is wrong.
    var fault: String? {
        let isLine =
            (1...VaultLimits.tokenURIBytes).contains(uri.utf8.count)
            && !uri.utf8.contains { $0 < 0x20 || $0 == 0x7F }
        guard isLine else { return "a token's URI that is no line of text" }
        guard leafSHA256.count == VaultLimits.digestBytes else {
            return "a SHA-256 has 32 bytes, not \(leafSHA256.count)"
        }
        return nil
    }
}

extension VaultLimits {
    package static let tokenURIBytes = 4096
    package static let pinBytes = 256
}

extension VaultContents {
    /// Keeps where a key lies, in the place of any key of that identity. Throws `invalidRecord` for a value out of
    /// ``VaultLimits``.
    package mutating func setTokenKey(_ key: TokenKey) throws(VaultError) {
        try VaultLimits.check(name: key.name)
        try VaultLimits.check(key.pin, "PIN", upTo: VaultLimits.pinBytes)
        if let fault = key.fault { throw VaultError(.invalidRecord, fault) }
        removeIdentityKey(named: key.name)
        advance()
        tokenKeys[key.name] = key
    }

    /// Keeps that the token has refused the key's PIN, where the key is still that one.
    package mutating func refusePIN(of key: TokenKey) {
        guard tokenKeys[key.name] == key, !key.isPINRefused else { return }
        advance()
        tokenKeys[key.name]?.isPINRefused = true
    }

    /// Whether there was a key of that name to forget; it stays in its token.
    @discardableResult
    package mutating func removeTokenKey(named name: String) -> Bool {
        guard tokenKeys.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }
}

// MARK: As a record

extension RecordWriter {
    mutating func append(_ key: TokenKey) {
        field(key.name)
        field(key.uri)
        field(key.pin)
        for byte in key.leafSHA256 { append(byte) }
        append(UInt8(key.isPINRefused ? 1 : 0))
    }
}

extension RecordReader {
    /// The rest of a token's key, whose name was read.
    mutating func tokenKey(named name: String) throws(VaultError) -> TokenKey {
        let uri = try text()
        let pin = try secret(upTo: VaultLimits.pinBytes)
        var key = TokenKey(name: name, uri: uri, pin: pin, leafSHA256: Array(try take(VaultLimits.digestBytes)))
        key.isPINRefused = try flag()
        if let fault = key.fault { throw Self.malformed(fault) }
        return key
    }
}
