// SPDX-License-Identifier: Apache-2.0

/// The server's message: its nonce, its names and the flags that it granted. MS-NLMP §2.2.1.2.
///
/// Only messages with Unicode and TargetInfo are supported, because NTLMv2 requires both.
package struct ChallengeMessage: Equatable, Sendable {
    package static let serverChallengeBytes = 8

    package var flags: NegotiateFlags
    /// 8 bytes.
    package var serverChallenge: [UInt8]
    /// The NetBIOS name of the server or its domain, in UTF-16LE.
    package var targetName: [UInt8]
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

    /// Parses a server's message. Throws `malformed`, or `unsupported` if the message does not permit NTLMv2.
    package init(parsing bytes: [UInt8]) throws(NTLMError) {
        var reader = try MessageReader(bytes, name: "ChallengeMessage", messageType: 2, headerBytes: 48)
        flags = NegotiateFlags(rawValue: reader.uint32(at: 20))
        serverChallenge = reader.fixed(at: 24, count: Self.serverChallengeBytes)
        targetName = try reader.payload(at: 12, named: "TargetName")
        let info = try reader.payload(at: 40, named: "TargetInfo")
        try Self.check(flags, hasTargetInfo: !info.isEmpty)
        targetInfo = try TargetInfo(parsing: info)
        version = nil
        if flags.contains(.version) {
            guard bytes.count >= 48 + Version.lengthBytes else {
                throw NTLMError(.malformed, "ChallengeMessage of \(bytes.count) bytes has no room for its version")
            }
            version = Version(reader, at: 48)
        }
    }

    private static func check(_ flags: NegotiateFlags, hasTargetInfo: Bool) throws(NTLMError) {
        guard flags.contains(.unicode) else {
            throw NTLMError(.unsupported, "the server's ChallengeMessage does not grant Unicode")
        }
        guard flags.contains(.targetInfo), hasTargetInfo else {
            throw NTLMError(.unsupported, "the server's ChallengeMessage has no target info: it speaks NTLMv1 only")
        }
        guard flags.contains(.extendedSessionSecurity) else {
            throw NTLMError(.unsupported, "the server's ChallengeMessage does not grant extended session security")
        }
    }

    /// The encoded message: a header of 48 or 56 bytes and the payload. Throws `unusableCredential` if a field is too
    /// long.
    package func serialized() throws(NTLMError) -> [UInt8] {
        precondition(serverChallenge.count == Self.serverChallengeBytes, "a server challenge has 8 bytes")
        var writer = MessageWriter(messageType: 2, headerBytes: version == nil ? 48 : 56)
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
