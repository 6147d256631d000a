// SPDX-License-Identifier: Apache-2.0

/// The protocol that a client speaks in a tunnel, by its first bytes: HTTP/1, TLS or another one.
///
/// The request-line alone decides (RFC 9112 §3). A line that begins with a method of RFC 9110, or PATCH, is HTTP even
/// if the rest of it is malformed, so that it is refused. Any other line must end in `HTTP/1.` and a digit.
package enum TunnelStart: Equatable, Sendable {
    case http
    /// A TLS handshake record (RFC 8446 §5.1).
    case tls
    /// Also the preface of HTTP/2 (RFC 9113 §3.4), and RTSP, SIP and ICAP, whose requests look like those of HTTP.
    case other
    /// Not enough bytes, or none.
    case undecided
    /// Not enough bytes, but they are the beginning of a request-line with a method of RFC 9110, or of such a method.
    case beginsRequest

    package init(_ bytes: RawSpan, limits: HeadLimits = .standard) {
        guard bytes.byteCount > 0 else {
            self = .undecided
            return
        }
        guard bytes.byte(0) != Self.handshakeRecord else {
            self = .tls
            return
        }
        let methodEnd = bytes.endOfToken(from: 0)
        guard methodEnd < bytes.byteCount else {
            let begins = Method.allCases.contains { bytes.isBeginning(of: $0.rawValue) }
            self = begins ? .beginsRequest : methodEnd > limits.requestLineBytes ? .other : .undecided
            return
        }
        let isKnown = methodEnd > 0 && Method(in: bytes, at: 0..<methodEnd) != .other
        guard isKnown || methodEnd > 0 && bytes.byte(methodEnd) == Octet.space else {
            self = .other
            return
        }
        let lineEnd = bytes.firstControl(from: methodEnd)
        guard lineEnd < bytes.byteCount else {
            let isLong = lineEnd > limits.requestLineBytes
            self = isKnown ? (isLong ? .http : .beginsRequest) : (isLong ? .other : .undecided)
            return
        }
        let version = bytes.lastWord(of: methodEnd..<lineEnd)
        if isKnown {
            self = Self.similar.contains { bytes.begins(version, with: $0) } ? .other : .http
        } else {
            let isHTTP1 = version.count == 8 && bytes.begins(version, with: "HTTP/1.")
            self = isHTTP1 && Octet.isDigit(bytes.byte(version.upperBound - 1)) ? .http : .other
        }
    }

    private static let handshakeRecord: UInt8 = 0x16
    /// The versions of protocols that share OPTIONS with HTTP (RFC 7826, RFC 3261, RFC 3507).
    private static let similar: [String] = ["RTSP/", "SIP/", "ICAP/"]
}

extension RawSpan {
    /// Whether all bytes are the beginning of `text`, or all of it.
    fileprivate func isBeginning(of text: String) -> Bool {
        byteCount <= text.utf8.count && equals(String(text.prefix(byteCount)), at: 0..<byteCount)
    }

    fileprivate func begins(_ range: Range<Int>, with text: String) -> Bool {
        range.count >= text.utf8.count && equals(text, at: range.prefix(text.utf8.count))
    }

    /// The part of `range` behind its last space.
    fileprivate func lastWord(of range: Range<Int>) -> Range<Int> {
        var start = range.upperBound
        while start > range.lowerBound, byte(start - 1) != Octet.space { start -= 1 }
        return start..<range.upperBound
    }
}
