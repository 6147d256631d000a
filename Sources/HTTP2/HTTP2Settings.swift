// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// The limits that we announce to the peer (RFC 9113 §6.5.2), and those that we keep without telling it.
package struct HTTP2Settings: Sendable {
    /// Streams that the peer may have open at a time.
    package var maximumStreams: UInt32 = 100
    /// The window of each stream in octets, which bounds the content buffered for a slow reader. At most 2^31 - 1.
    package var streamWindowBytes: Int32 = 256 * 1024
    /// The window of the connection in octets. It is refilled on receipt, so that no stream can stop the others.
    package var connectionWindowBytes: Int32 = 1024 * 1024
    /// Limits of a head and a trailer section, which are counted as in HTTP/1.
    package var limits: HeadLimits
    /// Makes a Sec-WebSocket-Key (RFC 6455 §4.1), which HTTP/1.1 needs to open a WebSocket, and HTTP/2 does not have.
    /// Nil if clients may open no WebSocket in a stream (RFC 8441). Servers only.
    package var webSocketKey: (@Sendable () -> String)?
    /// The scheme that requests must have, in lower case.
    package var scheme: StaticString = "https"
    /// Octets of content queued on a stream from which on it is not writable.
    package var queuedContentBytes = 64 * 1024

    package static let server = HTTP2Settings(limits: .standard)
    package static let client = HTTP2Settings(limits: .response)

    package init(limits: HeadLimits) { self.limits = limits }
}
