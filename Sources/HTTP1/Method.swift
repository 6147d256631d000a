// SPDX-License-Identifier: Apache-2.0

/// The methods of RFC 9110 §9 and PATCH, which are case-sensitive. Any other method is forwarded without
/// interpretation.
package enum Method: String, CaseIterable, Hashable, Sendable {
    case get = "GET"
    case head = "HEAD"
    case post = "POST"
    case put = "PUT"
    case delete = "DELETE"
    case connect = "CONNECT"
    case options = "OPTIONS"
    case trace = "TRACE"
    case patch = "PATCH"
    case other = ""

    /// The raw value as a literal, which is compared with bytes.
    private var literal: StaticString {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .connect: "CONNECT"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .patch: "PATCH"
        case .other: ""
        }
    }

    /// Whether Max-Forwards applies: for TRACE and OPTIONS (RFC 9110 §7.6.2).
    package var takesMaxForwards: Bool { self == .trace || self == .options }

    /// Whether the method only reads (RFC 9110 §9.2.1).
    package var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        case .post, .put, .delete, .connect, .patch, .other: false
        }
    }

    /// Whether sending the request twice has the same effect as once (RFC 9110 §9.2.2).
    package var isIdempotent: Bool { isSafe || self == .put || self == .delete }

    init(in bytes: RawSpan, at range: Range<Int>) {
        let candidate: Method =
            switch (range.count, bytes.byte(range.lowerBound)) {
            case (3, 0x47): .get
            case (3, 0x50): .put
            case (4, 0x48): .head
            case (4, 0x50): .post
            case (5, 0x50): .patch
            case (5, 0x54): .trace
            case (6, 0x44): .delete
            case (7, 0x43): .connect
            case (7, 0x4F): .options
            default: .other
            }
        self = candidate != .other && bytes.equals(candidate.literal, at: range) ? candidate : .other
    }
}

/// The supported versions. Every other one is refused.
package enum HTTPVersion: String, Hashable, Sendable {
    case http10 = "HTTP/1.0"
    case http11 = "HTTP/1.1"

    /// Throws `fallback` if `range` is not an HTTP version.
    init(in bytes: RawSpan, at range: Range<Int>, orElse fallback: HTTP1Error) throws(HTTP1Error) {
        let word = range.count == 8 ? bytes.eightBytes(range.lowerBound) : 0
        if word == HTTPVersion.word(ending: 0x31) {
            self = .http11
        } else if word == HTTPVersion.word(ending: 0x30) {
            self = .http10
        } else {
            let start = range.lowerBound
            guard range.count == 8, bytes.equals("HTTP/", at: start..<start + 5), Octet.isDigit(bytes.byte(start + 5)),
                bytes.byte(start + 6) == 0x2E, Octet.isDigit(bytes.byte(start + 7))
            else { throw fallback }
            let number = "\(bytes.byte(start + 5) - 0x30).\(bytes.byte(start + 7) - 0x30)"
            throw HTTP1Error(.unsupportedVersion, "HTTP/\(number) is not supported", sentBy: fallback.sender)
        }
    }

    /// `HTTP/1.` and `digit` as one little-endian word.
    private static func word(ending digit: UInt8) -> UInt64 { 0x002E_312F_5054_5448 | UInt64(digit) << 56 }
}
