// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHTTP1

/// The part of a WebSocket's opening handshake that HTTP/2 does not have (RFC 6455 §4, RFC 8441 §5.1). For a client of
/// HTTP/2, the proxy does it towards the origin.
enum WebSocketHandshake {
    /// A fresh Sec-WebSocket-Key.
    @Sendable static func key() -> String { Base64.encode(Randomness.bytes(16)) }

    /// Whether the 101 `response` opens the WebSocket that `request` asks for.
    static func accepts(_ request: RequestHead, _ response: ResponseHead) -> Bool {
        guard response.upgrade?.lowercased() == "websocket",
            let key = request.fields.values(named: "sec-websocket-key").first
        else { return false }
        return response.fields.values(named: "sec-websocket-accept") == [accept(for: key)]
    }

    static func accept(for key: String) -> String {
        Base64.encode(Digest.sha1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }
}
