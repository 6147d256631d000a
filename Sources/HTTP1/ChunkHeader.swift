// SPDX-License-Identifier: Apache-2.0

/// Reads `chunk-size [ chunk-ext ] CRLF` octet by octet (RFC 9112 §7.1). Extensions are validated and discarded; white
/// space is refused except in quoted strings.
struct ChunkHeader: Sendable {
    private enum Part: Sendable {
        case size
        case nameStart
        case name
        case valueStart
        case value
        case quoted
        case escaped
        case afterQuoted
        case lineFeed
    }

    /// At most 2^63 - 1.
    private(set) var size: UInt64 = 0
    /// Octets of extensions so far, in all chunks of the message.
    private var extensionBytes = 0
    private var digits = 0
    private var part = Part.size
    private let extensionLimit: Int
    private let sender: MessageSender

    init(extensionLimit: Int, sentBy sender: MessageSender) {
        self.extensionLimit = extensionLimit
        self.sender = sender
    }

    /// Prepares for the next chunk's header.
    mutating func reset() {
        size = 0
        digits = 0
        part = .size
    }

    /// Consumes the next octet of the header; true if it is the last one.
    mutating func consume(_ octet: UInt8) throws(HTTP1Error) -> Bool {
        switch part {
        case .size:
            if let digit = ChunkHeader.hexadecimalDigit(octet) {
                guard digits < 16, size <= UInt64(Int64.max) >> 4 else {
                    throw HTTP1Error(.malformedChunk, "chunk size of 2^63 or more", sentBy: sender)
                }
                size = size << 4 | UInt64(digit)
                digits += 1
                return false
            }
            guard digits > 0 else { throw fault(octet) }
            try endElement(octet)
            return false
        case .lineFeed:
            guard octet == Octet.lineFeed else {
                throw HTTP1Error(.malformedChunk, "carriage return without line feed", sentBy: sender)
            }
            return true
        case .nameStart, .name, .valueStart, .value, .quoted, .escaped, .afterQuoted:
            try consumeExtension(octet)
            return false
        }
    }

    private mutating func consumeExtension(_ octet: UInt8) throws(HTTP1Error) {
        if octet != Octet.carriageReturn, octet != Octet.semicolon { try countExtension() }
        switch part {
        case .nameStart where Octet.isToken(octet), .name where Octet.isToken(octet):
            part = .name
        case .name where octet == Octet.equals:
            part = .valueStart
        case .valueStart where octet == Octet.quote:
            part = .quoted
        case .valueStart where Octet.isToken(octet), .value where Octet.isToken(octet):
            part = .value
        case .quoted where octet == Octet.quote:
            part = .afterQuoted
        case .quoted where octet == Octet.backslash:
            part = .escaped
        case .quoted where ChunkHeader.isQuotable(octet), .escaped where ChunkHeader.isQuotable(octet):
            if octet == Octet.semicolon { try countExtension() }
            part = .quoted
        case .name, .value, .afterQuoted:
            try endElement(octet)
        default:
            throw fault(octet)
        }
    }

    /// The octet after the size or an extension: the semicolon of the next extension, or the end of the line.
    private mutating func endElement(_ octet: UInt8) throws(HTTP1Error) {
        switch octet {
        case Octet.semicolon:
            try countExtension()
            part = .nameStart
        case Octet.carriageReturn:
            part = .lineFeed
        default:
            throw fault(octet)
        }
    }

    private mutating func countExtension() throws(HTTP1Error) {
        extensionBytes += 1
        guard extensionBytes <= extensionLimit else {
            throw HTTP1Error(
                .chunkExtensionTooLong, "more than \(extensionLimit) bytes of chunk extensions", sentBy: sender)
        }
    }

    private func fault(_ octet: UInt8) -> HTTP1Error {
        octet == Octet.lineFeed
            ? HTTP1Error(.bareLineFeed, "line feed without carriage return", sentBy: sender)
            : HTTP1Error(.malformedChunk, "byte \(hexadecimal(octet)) in a chunk header", sentBy: sender)
    }

    private static func isQuotable(_ octet: UInt8) -> Bool { octet == Octet.tab || octet >= 0x20 && octet < 0x7F }

    private static func hexadecimalDigit(_ octet: UInt8) -> UInt8? {
        if Octet.isDigit(octet) { return octet - 0x30 }
        let folded = Octet.lowercased(octet)
        return folded >= 0x61 && folded <= 0x66 ? folded - 0x61 + 10 : nil
    }
}
