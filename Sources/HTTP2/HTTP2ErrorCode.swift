// SPDX-License-Identifier: Apache-2.0

/// The 32-bit code in RST_STREAM and GOAWAY (RFC 9113 §7). Peers may send codes that have no name here.
package struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let noError = HTTP2ErrorCode(rawValue: 0x0)
    package static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    package static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    package static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
    package static let settingsTimeout = HTTP2ErrorCode(rawValue: 0x4)
    package static let streamClosed = HTTP2ErrorCode(rawValue: 0x5)
    package static let frameSizeError = HTTP2ErrorCode(rawValue: 0x6)
    /// The stream was refused before the peer processed anything of it.
    package static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    package static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    package static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
    package static let connectError = HTTP2ErrorCode(rawValue: 0xA)
    package static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xB)
    package static let inadequateSecurity = HTTP2ErrorCode(rawValue: 0xC)
    /// The peer requires HTTP/1.1 for this request.
    package static let http11Required = HTTP2ErrorCode(rawValue: 0xD)

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    /// The name in RFC 9113, or the number in hexadecimal.
    package var description: String {
        rawValue < Self.names.count ? Self.names[Int(rawValue)] : "0x" + String(rawValue, radix: 16)
    }
}

/// How a stream ended.
package enum HTTP2StreamEnd: Hashable, Sendable {
    /// Both sides sent END_STREAM.
    case complete
    /// RST_STREAM by the peer. With `noError` after a complete response it only stops the request's content
    /// (RFC 9113 §8.1).
    case resetByPeer(HTTP2ErrorCode)
    /// RST_STREAM by us: the caller's ``HTTP2Stream/reset(_:)``, or a message that broke the rules.
    case resetByUs(HTTP2ErrorCode)
    /// The peer's GOAWAY excludes the stream, or it could not be opened at all: the peer did not process it.
    case notProcessed
    /// The connection ended first.
    case connectionLost

    /// The peer has certainly not processed the request, so a request with any method may be sent again on another
    /// connection (RFC 9113 §8.7).
    package var isRetryable: Bool { self == .notProcessed || self == .resetByPeer(.refusedStream) }

    /// The origin answers this request over HTTP/1.1 only.
    package var requiresHTTP1: Bool { self == .resetByPeer(.http11Required) }
}

/// Why a message from the peer is refused. The detail never contains a field value.
package struct HTTP2Refusal: Error, Equatable, CustomStringConvertible {
    package let detail: String
    /// The status that tells a client so: 400, 414, 431, 501 or 505. For a response it is 502.
    package let statusHint: Int

    package var description: String { detail }
}
