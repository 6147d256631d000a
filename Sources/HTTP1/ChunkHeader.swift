// SPDX-License-Identifier: Apache-2.0

/// Reads `chunk-size [ chunk-ext ] CRLF` octet by octet (RFC 9112 §7.1). Extensions are validated and discarded.
/// From a client, white space is refused except in quoted strings. From an origin, blanks are read after the size and
/// around the parts of an extension, as are more than 16 digits and a line feed without carriage return.
struct ChunkHeader: Sendable {
    private enum Part: Sendable {
        case size
        case afterSize
        case nameStart
        case name
        case afterName
        case valueStart
        case value
        case quoted
        case escaped
        case afterValue
        case lineFeed
    }

    /// At most 2^63 - 1.
    private(set) var size: UInt64 = 0
    /// The tolerated fault in the header.
    private(set) var repair: HTTP1Error.Code?
    /// Octets of extensions, blanks and needless zeros so far: in all chunks of a client's message, in this chunk of an
    /// origin's. Some servers pad every size with blanks.
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
        repair = nil
        if sender == .origin { extensionBytes = 0 }
    }

    /// Consumes the next octet of the header; true if it is the last one.
    mutating func consume(_ octet: UInt8) throws(HTTP1Error) -> Bool {
        switch part {
        case .size:
            if let digit = ChunkHeader.hexadecimalDigit(octet) {
                guard digits < 16 || sender == .origin, size <= UInt64(Int64.max) >> 4 else {
                    throw HTTP1Error(.malformedChunk, "chunk size of 2^63 or more", sentBy: sender)
                }
                if digits >= 16 { try countRepair() }
                size = size << 4 | UInt64(digit)
                digits += 1
                return false
            }
            guard digits > 0 else { throw fault(octet) }
            return try endElement(octet, blank: .afterSize)
        case .afterSize:
            return try endElement(octet, blank: .afterSize)
        case .lineFeed:
            guard octet == Octet.lineFeed else {
                throw HTTP1Error(.malformedChunk, "carriage return without line feed", sentBy: sender)
            }
            return true
        case .nameStart, .name, .afterName, .valueStart, .value, .quoted, .escaped, .afterValue:
            return try consumeExtension(octet)
        }
    }

    private mutating func consumeExtension(_ octet: UInt8) throws(HTTP1Error) -> Bool {
        switch part {
        case .nameStart where readsBlank(octet), .valueStart where readsBlank(octet):
            try countRepair()
            return false
        case .nameStart where Octet.isToken(octet), .name where Octet.isToken(octet):
            part = .name
        case .name where octet == Octet.equals, .afterName where octet == Octet.equals:
            part = .valueStart
        case .valueStart where octet == Octet.quote:
            part = .quoted
        case .valueStart where Octet.isToken(octet), .value where Octet.isToken(octet):
            part = .value
        case .quoted where octet == Octet.quote:
            part = .afterValue
        case .quoted where octet == Octet.backslash:
            part = .escaped
        case .quoted where ChunkHeader.isQuotable(octet), .escaped where ChunkHeader.isQuotable(octet):
            part = .quoted
        case .name, .afterName:
            return try endElement(octet, blank: .afterName)
        case .value, .afterValue:
            return try endElement(octet, blank: .afterValue)
        default:
            throw fault(octet)
        }
        try countExtension()
        return false
    }

    /// The octet after the size or a part of an extension: the semicolon of the next extension, or the end of the line,
    /// for which the result is true. An origin may send a `blank` before it.
    private mutating func endElement(_ octet: UInt8, blank next: Part) throws(HTTP1Error) -> Bool {
        switch octet {
        case Octet.semicolon:
            try countExtension()
            part = .nameStart
        case Octet.carriageReturn:
            part = .lineFeed
        case Octet.lineFeed where sender == .origin:
            repair = .bareLineFeed
            return true
        case _ where readsBlank(octet):
            part = next
            try countRepair()
        default:
            throw fault(octet)
        }
        return false
    }

    private func readsBlank(_ octet: UInt8) -> Bool { sender == .origin && Octet.isWhitespace(octet) }

    /// An octet that is read although it does not belong there. It counts as one of an extension.
    private mutating func countRepair() throws(HTTP1Error) {
        repair = .malformedChunk
        try countExtension()
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
