// SPDX-License-Identifier: Apache-2.0

/// How the end of a message's body is found (RFC 9112 §6.3).
package enum BodyFraming: Hashable, Sendable {
    case none
    /// Octets; at most 2^63 - 1.
    case length(UInt64)
    case chunked
    /// Responses only.
    case untilClose

    // Pattern matches here are cheaper than `==` in another module, which calls the unspecialized implementation.

    /// The body is sent in chunks (RFC 9112 §7.1).
    package var isChunked: Bool { if case .chunked = self { true } else { false } }
    /// Only the end of the connection ends the body, so no message can follow.
    package var endsConnection: Bool { if case .untilClose = self { true } else { false } }

    /// The framing that Transfer-Encoding or Content-Length declares; nil without either.
    ///
    /// Refuses a message with both, a Transfer-Encoding other than `chunked` alone or in HTTP/1.0, and a Content-Length
    /// that is not exactly one canonical decimal.
    static func declared(
        by fields: FieldLines, version: HTTPVersion, sentBy sender: MessageSender
    ) throws(HTTP1Error) -> BodyFraming? {
        try BodyFraming.refuseTabs(in: fields, sentBy: sender)
        if fields.contains(.transferEncoding) {
            guard version == .http11 else {
                throw HTTP1Error(.conflictingFraming, "Transfer-Encoding in HTTP/1.0", sentBy: sender)
            }
            guard !fields.contains(.contentLength) else {
                throw HTTP1Error(.conflictingFraming, "both Transfer-Encoding and Content-Length", sentBy: sender)
            }
            try BodyFraming.requireChunkedAlone(fields, sentBy: sender)
            return .chunked
        } else if fields.contains(.contentLength) {
            return .length(try BodyFraming.contentLength(of: fields, sentBy: sender))
        } else {
            return nil
        }
    }

    /// Parsers disagree about a tab in these fields: llhttp refuses it after a Content-Length.
    private static func refuseTabs(in fields: FieldLines, sentBy sender: MessageSender) throws(HTTP1Error) {
        guard let name = fields.framing.tabbed else { return }
        throw HTTP1Error(
            name == .contentLength ? .invalidContentLength : .invalidTransferEncoding,
            "horizontal tab in a framing field", sentBy: sender)
    }

    private static func requireChunkedAlone(_ fields: FieldLines, sentBy sender: MessageSender) throws(HTTP1Error) {
        let span = fields.bytes.span.bytes
        var codings = 0
        var otherCodings = 0
        var chunkedAt: Int?
        for line in fields.lines where line.known == .transferEncoding {
            let value = Range<Int>(line.value)
            var start = value.lowerBound
            while true {
                var end = start
                while end < value.upperBound, span.byte(end) != Octet.comma { end += 1 }
                let coding = span.trimmed(start..<end)
                guard !coding.isEmpty, span.endOfToken(from: coding.lowerBound) >= coding.upperBound, chunkedAt == nil
                else {
                    throw HTTP1Error(.invalidTransferEncoding, "malformed Transfer-Encoding", sentBy: sender)
                }
                if span.matches("chunked", at: coding) { chunkedAt = codings } else { otherCodings += 1 }
                codings += 1
                guard end < value.upperBound else { break }
                start = end + 1
            }
        }
        guard chunkedAt != nil else {
            throw HTTP1Error(.invalidTransferEncoding, "Transfer-Encoding does not end in chunked", sentBy: sender)
        }
        guard otherCodings == 0 else {
            throw HTTP1Error(.unsupportedTransferEncoding, "transfer coding other than chunked", sentBy: sender)
        }
    }

    /// The value of the only Content-Length.
    static func contentLength(of fields: FieldLines, sentBy sender: MessageSender) throws(HTTP1Error) -> UInt64 {
        guard let length = fields.framing.contentLength else {
            throw HTTP1Error(.invalidContentLength, "malformed or repeated Content-Length", sentBy: sender)
        }
        return length
    }
}

extension FieldLines {
    /// Whether a plain Content-Length already declares `outgoing`, and nothing contradicts it.
    func declares(_ outgoing: BodyFraming) -> Bool {
        guard case .length(let length) = outgoing, !contains(.transferEncoding) else { return false }
        return framing.contentLength == length && framing.isPlainLength
    }
}
