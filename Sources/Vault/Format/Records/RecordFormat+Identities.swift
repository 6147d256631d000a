// SPDX-License-Identifier: Apache-2.0

extension RecordFormat {
    /// The keys of client identities.
    static let identities: [RecordFormat] = [
        named(.identityKey, { $0.identityKeys }) { writer, name, key in
            writer.field(name)
            writer.field(key.privateKey)
            for byte in key.leafSHA256 { writer.append(byte) }
        } read: { name, body, parts throws(VaultError) in
            let key = try body.secret(upTo: VaultLimits.keyBytes)
            let digest = Array(try body.bytes(VaultLimits.digestBytes))
            parts.identityKeys[name] = IdentityKey(name: name, privateKey: key, leafSHA256: digest)
        },
        named(.tokenKey, { $0.tokenKeys }) {
            $0.append($2)
        } read: { name, body, parts throws(VaultError) in
            guard parts.identityKeys[name] == nil else { throw RecordReader.malformed("two keys for one identity") }
            parts.tokenKeys[name] = try body.tokenKey(named: name)
        },
        RecordFormat(kind: .identityOrder) { contents, writer in
            guard contents.hasOwnOrder else { return }
            writer.record(.identityOrder) { writer in
                writer.append(UInt32(contents.identityOrder.count))
                for name in contents.identityOrder { writer.field(name) }
            }
        } read: { body, parts throws(VaultError) in
            try parts.advance(to: (.identityOrder, ""))
            var names: [String] = []
            for _ in 0..<(try body.number(UInt32.self)) { names.append(try body.text()) }
            guard names != names.sorted() else { throw RecordReader.malformed("the order of identities") }
            parts.identityOrder = names
        },
    ]
}

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
    /// The fields after the name.
    mutating func tokenKey(named name: String) throws(VaultError) -> TokenKey {
        let uri = try text()
        let pin = try secret(upTo: VaultLimits.pinBytes)
        var key = TokenKey(name: name, uri: uri, pin: pin, leafSHA256: Array(try bytes(VaultLimits.digestBytes)))
        key.isPINRefused = try flag()
        if let fault = key.fault { throw Self.malformed(fault) }
        return key
    }
}
