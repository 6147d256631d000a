// SPDX-License-Identifier: Apache-2.0

/// The client's second message: the account and the proof. MS-NLMP §2.2.1.3.
package struct AuthenticateMessage: Equatable, Sendable {
    /// The offset of the MIC, which follows the version.
    static let micOffset = 72
    private static let fixedHeaderBytes = 64

    package var flags: NegotiateFlags
    package var lmChallengeResponse: [UInt8]
    package var ntChallengeResponse: [UInt8]
    package var domain: String
    package var user: String
    package var workstation: String
    /// Empty unless a key exchange was negotiated.
    package var encryptedRandomSessionKey: [UInt8]
    package var version: Version
    /// 16 bytes, or nil if the message does not have the field.
    package var mic: [UInt8]?

    package init(
        flags: NegotiateFlags, lmChallengeResponse: [UInt8], ntChallengeResponse: [UInt8], domain: String, user: String,
        workstation: String, encryptedRandomSessionKey: [UInt8], version: Version, mic: [UInt8]?
    ) {
        self.flags = flags
        self.lmChallengeResponse = lmChallengeResponse
        self.ntChallengeResponse = ntChallengeResponse
        self.domain = domain
        self.user = user
        self.workstation = workstation
        self.encryptedRandomSessionKey = encryptedRandomSessionKey
        self.version = version
        self.mic = mic
    }

    /// Returns `message` with `mic` in its MIC field.
    package static func write(_ mic: [UInt8], into message: [UInt8]) -> [UInt8] {
        var message = message
        message.replaceSubrange(micOffset..<micOffset + MIC.lengthBytes, with: mic)
        return message
    }

    /// Parses a client's message with Unicode names. The MIC field is present if the payload starts after it.
    package init(parsing bytes: [UInt8]) throws(NTLMError) {
        var reader = try MessageReader(
            bytes, name: "AuthenticateMessage", messageType: 3, headerBytes: Self.fixedHeaderBytes)
        flags = NegotiateFlags(rawValue: reader.uint32(at: 60))
        guard flags.contains(.unicode) else {
            throw NTLMError(.unsupported, "AuthenticateMessage without Unicode")
        }
        lmChallengeResponse = try reader.payload(at: 12, named: "LmChallengeResponse")
        ntChallengeResponse = try reader.payload(at: 20, named: "NtChallengeResponse")
        domain = try Self.text(reader.payload(at: 28, named: "DomainName"), named: "DomainName")
        user = try Self.text(reader.payload(at: 36, named: "UserName"), named: "UserName")
        workstation = try Self.text(reader.payload(at: 44, named: "Workstation"), named: "Workstation")
        encryptedRandomSessionKey = try reader.payload(at: 52, named: "EncryptedRandomSessionKey")
        let hasVersion = reader.firstPayload >= Self.micOffset && flags.contains(.version)
        version = hasVersion ? Version(reader, at: Self.fixedHeaderBytes) : Version(major: 0, minor: 0, build: 0)
        let hasMIC = reader.firstPayload >= Self.micOffset + MIC.lengthBytes
        mic = hasMIC ? reader.fixed(at: Self.micOffset, count: MIC.lengthBytes) : nil
    }

    private static func text(_ bytes: [UInt8], named field: String) throws(NTLMError) -> String {
        guard let text = UTF16Text.decode(bytes) else {
            throw NTLMError(.malformed, "AuthenticateMessage: \(field) is not UTF-16")
        }
        return text
    }

    /// The encoded message: a header of 72 or 88 bytes and the payload. Names are in UTF-16LE if the flags include
    /// Unicode, and otherwise in ASCII, which all OEM character sets contain. Throws `unusableCredential` if a field is
    /// too long, or if a name has to be ASCII and is not.
    package func serialized() throws(NTLMError) -> [UInt8] {
        var writer = MessageWriter(messageType: 3, headerBytes: Self.micOffset + (mic?.count ?? 0))
        let domain = try place(domain, named: "domain", &writer)
        let user = try place(user, named: "user name", &writer)
        let workstation = try place(workstation, named: "workstation", &writer)
        let lmResponse = try writer.place(lmChallengeResponse, named: "LmChallengeResponse")
        let ntResponse = try writer.place(ntChallengeResponse, named: "NtChallengeResponse")
        let sessionKey = try writer.place(encryptedRandomSessionKey, named: "EncryptedRandomSessionKey")
        for field in [lmResponse, ntResponse, domain, user, workstation, sessionKey] { writer.put(field) }
        writer.put(flags.rawValue.littleEndianBytes)
        writer.put(version.serialized)
        if let mic { writer.put(mic) }
        return writer.bytes
    }

    private func place(
        _ text: String, named field: String, _ writer: inout MessageWriter
    ) throws(NTLMError) -> MessageWriter.Field {
        guard !flags.contains(.unicode) else { return try writer.place(UTF16Text.encode(text), named: field) }
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw NTLMError(
                .unusableCredential,
                "the server does not read Unicode, and the \(field) has characters other than ASCII")
        }
        return try writer.place(Array(text.utf8), named: field)
    }
}
