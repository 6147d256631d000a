// SPDX-License-Identifier: Apache-2.0

extension Decoder {
    /// The object's members.
    /// - Throws: `ProtocolError` if it has a member that `Key` does not have.
    func members<Key: CodingKey & CaseIterable & RawRepresentable<String>>(
        _ keys: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        let known = Set(Key.allCases.map(\.rawValue))
        for key in try container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
            // The name comes from the message: only its beginning is repeated, and only if it looks like a name.
            let name = key.stringValue.prefix(32)
            throw ProtocolError("unknown member '\(name.allSatisfy { $0.isASCII && $0.isLetter } ? name : "?")'")
        }
        return try container(keyedBy: keys)
    }
}

private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
