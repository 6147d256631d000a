// SPDX-License-Identifier: Apache-2.0

/// The server's message: its nonce, its names and the flags that it granted. MS-NLMP §2.2.1.2.
///
/// Any message can be answered with NTLMv2 whose server says how it reads names. Old servers send neither target info
/// nor a version, and their messages may end before those fields.
package struct ChallengeMessage: Equatable, Sendable {
    package static let serverChallengeBytes = 8
    private static let headerBytes = 48
    /// Without the reserved bytes and TargetInfo.
    private static let shortHeaderBytes = 32

    package var flags: NegotiateFlags
    /// 8 bytes.
    package var serverChallenge: [UInt8]
    /// The NetBIOS name of the server or its domain, in UTF-16LE or an OEM character set.
    package var targetName: [UInt8]
    /// Without pairs if the server sent none.
    package var targetInfo: TargetInfo
    package var version: Version?

    package init(
        flags: NegotiateFlags, serverChallenge: [UInt8], targetName: String, targetInfo: TargetInfo, version: Version?
    ) {
        self.flags = flags
        self.serverChallenge = serverChallenge
        self.targetName = UTF16Text.encode(targetName)
        self.targetInfo = targetInfo
        self.version = version
    }

    /// Parses a server's message. Throws `malformed`, or `unsupported` if the server grants no encoding of names.
    ///
    /// TargetInfo is ignored unless its flag is set (§2.2.1.2), and so is a version for which there is no room.
    package init(parsing bytes: [UInt8]) throws(NTLMError) {
        let hasTargetInfo = bytes.count >= Self.headerBytes && Self.flags(in: bytes).contains(.targetInfo)
        var reader = try MessageReader(
            bytes, name: "ChallengeMessage", messageType: 2,
            headerBytes: hasTargetInfo ? Self.headerBytes : Self.shortHeaderBytes)
        flags = Self.flags(in: bytes)
        guard flags.contains(.unicode) || flags.contains(.oem) else {
            throw NTLMError(.unsupported, "the server's ChallengeMessage grants neither Unicode nor OEM names")
        }
        serverChallenge = reader.fixed(at: 24, count: Self.serverChallengeBytes)
        targetName = try reader.payload(at: 12, named: "TargetName")
        let info = hasTargetInfo ? try reader.payload(at: 40, named: "TargetInfo") : []
        targetInfo = try TargetInfo(parsing: info)
        let hasVersion =
            flags.contains(.version) && reader.firstPayload >= Self.headerBytes + Version.lengthBytes
        version = hasVersion ? Version(reader, at: Self.headerBytes) : nil
    }

    private static func flags(in bytes: [UInt8]) -> NegotiateFlags {
        let octets = bytes.dropFirst(20).prefix(4)
        return NegotiateFlags(rawValue: octets.reversed().reduce(0) { $0 << 8 | UInt32($1) })
    }

    /// The encoded message: a header of 48 or 56 bytes and the payload. Throws `unusableCredential` if a field is too
    /// long.
    package func serialized() throws(NTLMError) -> [UInt8] {
        precondition(serverChallenge.count == Self.serverChallengeBytes, "a server challenge has 8 bytes")
        var writer = MessageWriter(
            messageType: 2, headerBytes: Self.headerBytes + (version == nil ? 0 : Version.lengthBytes))
        let name = try writer.place(targetName, named: "TargetName")
        let info = try writer.place(try targetInfo.serialized(), named: "TargetInfo")
        writer.put(name)
        writer.put(flags.rawValue.littleEndianBytes)
        writer.put(serverChallenge)
        writer.put([UInt8](repeating: 0, count: 8))
        writer.put(info)
        if let version { writer.put(version.serialized) }
        return writer.bytes
    }
}
