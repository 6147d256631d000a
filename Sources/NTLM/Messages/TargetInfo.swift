// SPDX-License-Identifier: Apache-2.0

/// One attribute of a ``TargetInfo``: AvId 2 bytes, AvLen 2, value. MS-NLMP §2.2.2.1.
package struct AVPair: Equatable, Sendable {
    package struct ID: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        static let eol = ID(rawValue: 0)
        package static let nbComputerName = ID(rawValue: 1)
        package static let nbDomainName = ID(rawValue: 2)
        package static let dnsComputerName = ID(rawValue: 3)
        package static let dnsDomainName = ID(rawValue: 4)
        package static let dnsTreeName = ID(rawValue: 5)
        package static let flags = ID(rawValue: 6)
        package static let timestamp = ID(rawValue: 7)
        package static let singleHost = ID(rawValue: 8)
        package static let targetName = ID(rawValue: 9)
        package static let channelBindings = ID(rawValue: 10)

        func permits(lengthBytes: Int) -> Bool {
            switch self {
            case .nbComputerName, .nbDomainName, .dnsComputerName, .dnsDomainName, .dnsTreeName, .targetName:
                lengthBytes.isMultiple(of: 2)
            case .flags: lengthBytes == 4
            case .timestamp: lengthBytes == 8
            case .channelBindings: lengthBytes == 16
            default: true
            }
        }
    }

    package var id: ID
    package var value: [UInt8]

    package init(_ id: ID, _ value: [UInt8]) {
        self.id = id
        self.value = value
    }

    /// Creates a pair with a text value.
    package init(_ id: ID, text: String) {
        self.init(id, UTF16Text.encode(text))
    }

    /// Takes one pair from the beginning of `rest`; nil for MsvAvEOL.
    init?(takingFrom rest: inout ArraySlice<UInt8>) throws(NTLMError) {
        guard rest.count >= 4 else { throw NTLMError(.malformed, "target info has no MsvAvEOL") }
        let header = Array(rest.prefix(4))
        rest = rest.dropFirst(4)
        id = ID(rawValue: UInt16(header[0]) | UInt16(header[1]) << 8)
        let length = Int(header[2]) | Int(header[3]) << 8
        guard length <= rest.count else {
            throw NTLMError(.malformed, "AV pair \(id.rawValue) of \(length) bytes overruns the target info")
        }
        guard id != .eol else {
            guard length == 0 else { throw NTLMError(.malformed, "MsvAvEOL of \(length) bytes") }
            return nil
        }
        guard id.permits(lengthBytes: length) else {
            throw NTLMError(.malformed, "AV pair \(id.rawValue) of \(length) bytes")
        }
        value = Array(rest.prefix(length))
        rest = rest.dropFirst(length)
    }
}

/// The server's names, flags and time, and in the client's response also the channel bindings: AV pairs terminated by
/// MsvAvEOL. No ID occurs twice. MS-NLMP §2.2.2.1.
package struct TargetInfo: Equatable, Sendable {
    package private(set) var pairs: [AVPair] = []

    package init() {}

    package init(_ pairs: [AVPair]) {
        for pair in pairs { self[pair.id] = pair.value }
    }

    /// Parses a server's target info up to MsvAvEOL, or up to its end if MsvAvEOL is missing. If an ID occurs twice,
    /// the first pair counts, as for a reader that searches the list. Throws `malformed` if a pair exceeds `bytes` or
    /// has a wrong length.
    init(parsing bytes: [UInt8]) throws(NTLMError) {
        var rest = bytes[...]
        while !rest.isEmpty, let pair = try AVPair(takingFrom: &rest) {
            if self[pair.id] == nil { pairs.append(pair) }
        }
    }

    /// Parses a client's pairs up to and including MsvAvEOL, and leaves the remaining bytes in `rest`. Also throws
    /// `malformed` if MsvAvEOL is missing, or an ID occurs twice.
    package init(takingFrom rest: inout ArraySlice<UInt8>) throws(NTLMError) {
        while let pair = try AVPair(takingFrom: &rest) {
            guard self[pair.id] == nil else {
                throw NTLMError(.malformed, "AV pair \(pair.id.rawValue) comes twice")
            }
            pairs.append(pair)
        }
    }

    /// The value of the pair with `id`. Setting it replaces the pair in its position, or appends it.
    package subscript(id: AVPair.ID) -> [UInt8]? {
        get { pairs.first { $0.id == id }?.value }
        set {
            let index = pairs.firstIndex { $0.id == id }
            switch (index, newValue) {
            case (let index?, let value?): pairs[index].value = value
            case (let index?, nil): pairs.remove(at: index)
            case (nil, let value?): pairs.append(AVPair(id, value))
            case (nil, nil): break
            }
        }
    }

    /// The encoded pairs including MsvAvEOL. Throws `unusableCredential` if a value is longer than 65,535 bytes.
    package func serialized() throws(NTLMError) -> [UInt8] {
        var bytes: [UInt8] = []
        for pair in pairs {
            guard let length = UInt16(exactly: pair.value.count) else {
                throw NTLMError(
                    .unusableCredential, "AV pair \(pair.id.rawValue) of \(pair.value.count) bytes is too long")
            }
            bytes += pair.id.rawValue.littleEndianBytes + length.littleEndianBytes + pair.value
        }
        return bytes + [0, 0, 0, 0]
    }
}

extension TargetInfo {
    /// MsvAvFlags: the AuthenticateMessage contains a MIC.
    package static let micProvided: UInt32 = 0x2

    /// MsvAvTimestamp: FILETIME, 100 ns steps since 1601.
    package var timestamp: UInt64? {
        self[.timestamp].map { $0.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    }

    /// MsvAvFlags, or 0 if it is missing.
    package var flags: UInt32 {
        (self[.flags] ?? []).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// The pairs that the client returns: these, with the MIC announced, its channel bindings and the requested service
    /// (MS-NLMP §3.1.5.1.2). Bindings and a target name sent by the server are replaced.
    func answered(channelBindings: [UInt8], servicePrincipalName: String) -> TargetInfo {
        var answer = self
        answer[.flags] = (flags | Self.micProvided).littleEndianBytes
        answer[.channelBindings] = channelBindings
        answer[.targetName] = UTF16Text.encode(servicePrincipalName)
        return answer
    }
}
