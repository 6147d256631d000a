// SPDX-License-Identifier: Apache-2.0

/// The client's first message: its capabilities. MS-NLMP §2.2.1.1.
///
/// The domain and workstation, which are in the OEM character set in this message, are ignored when parsed and never
/// written.
package struct NegotiateMessage: Equatable, Sendable {
    package var flags: NegotiateFlags
    package var version: Version?

    package init(flags: NegotiateFlags, version: Version?) {
        self.flags = flags
        self.version = version
    }

    /// Parses a client's message. Messages of 16 bytes, without the two fields, are also accepted.
    package init(parsing bytes: [UInt8]) throws(NTLMError) {
        let hasFields = bytes.count >= 32
        var reader = try MessageReader(
            bytes, name: "NegotiateMessage", messageType: 1, headerBytes: hasFields ? 32 : 16)
        flags = NegotiateFlags(rawValue: reader.uint32(at: 12))
        if hasFields {
            _ = try reader.payload(at: 16, named: "DomainName")
            _ = try reader.payload(at: 24, named: "Workstation")
        }
        version = flags.contains(.version) && bytes.count >= 40 ? Version(reader, at: 32) : nil
    }

    /// The encoded message: 40 bytes, or 32 without a version.
    package var serialized: [UInt8] {
        var writer = MessageWriter(messageType: 1, headerBytes: version == nil ? 32 : 40)
        writer.put(flags.rawValue.littleEndianBytes)
        writer.put(.empty)
        writer.put(.empty)
        if let version { writer.put(version.serialized) }
        return writer.bytes
    }
}
