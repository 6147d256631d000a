// SPDX-License-Identifier: Apache-2.0

/// How the end of a message's body is found (RFC 9112 §6.3).
package enum BodyFraming: Hashable, Sendable {
    case none
    /// Octets; at most 2^63 - 1.
    case length(UInt64)
    case chunked
    /// Responses only.
    case untilClose

    /// What Transfer-Encoding and Content-Length say; nil when neither is there. The two together, a Transfer-Encoding
    /// that is not `chunked` alone or stands in HTTP/1.0, and a Content-Length that is not one canonical decimal are
    /// refused.
    static func said(
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

    /// The grammar lets HTAB stand around a value, but parsers differ over it (llhttp refuses it after a Content-Length).
    private static func refuseTabs(in fields: FieldLines, sentBy sender: MessageSender) throws(HTTP1Error) {
        guard fields.contains(.contentLength) || fields.contains(.transferEncoding) else { return }
        for line in fields.lines where line.known == .contentLength || line.known == .transferEncoding {
            guard !fields.bytes.span.bytes.hasTab(in: Range(line.line)) else {
                let isLength = line.known == .contentLength
                throw HTTP1Error(
                    isLength ? .invalidContentLength : .invalidTransferEncoding, "horizontal tab beside the framing",
                    sentBy: sender)
            }
        }
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

    /// The one Content-Length, canonical: digits only, no leading zero, below 2^63.
    static func contentLength(of fields: FieldLines, sentBy sender: MessageSender) throws(HTTP1Error) -> UInt64 {
        let fault = HTTP1Error(.invalidContentLength, "malformed or repeated Content-Length", sentBy: sender)
        var found: Range<UInt32>?
        for line in fields.lines where line.known == .contentLength {
            guard found == nil else { throw fault }
            found = line.value
        }
        guard let digits = found.map(Range<Int>.init), !digits.isEmpty, digits.count <= 19 else { throw fault }
        let span = fields.bytes.span.bytes
        guard span.byte(digits.lowerBound) != 0x30 || digits.count == 1 else { throw fault }
        var length: UInt64 = 0
        for position in digits {
            let digit = span.byte(position)
            guard Octet.isDigit(digit) else { throw fault }
            // 19 digits are below 10^19, which is below 2^64.
            length = length * 10 + UInt64(digit - 0x30)
        }
        guard length <= UInt64(Int64.max) else { throw fault }
        return length
    }
}

extension FieldLines {
    /// Whether a plain Content-Length says this already, and nothing else does.
    func says(_ framing: BodyFraming, sentBy sender: MessageSender) -> Bool {
        guard case .length(let length) = framing, contains(.contentLength), !contains(.transferEncoding),
            let line = lines.first(where: { $0.known == .contentLength }), isPlain(line)
        else { return false }
        return (try? BodyFraming.contentLength(of: self, sentBy: sender)) == length
    }
}

extension RawSpan {
    fileprivate func hasTab(in range: Range<Int>) -> Bool {
        for position in range where byte(position) == Octet.tab { return true }
        return false
    }
}
