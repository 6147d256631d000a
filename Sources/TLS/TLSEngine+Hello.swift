// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The extensions of the hello messages: the server's name, and the application protocol.
extension TLSEngine {
    // MARK: The application protocol (RFC 7301)

    /// Whether this end, a server, selects `h2` if the client offers it.
    var speaksHTTP2: Bool { if case .server(_, let speaks) = role { speaks } else { false } }

    var selectedProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &length)
        return length == 0
            ? nil : String(decoding: UnsafeBufferPointer(start: start, count: Int(length)), as: UTF8.self)
    }

    // MARK: The server's name

    /// Refuses a client that does not ask for the configured server name (RFC 6066 §3).
    func clientSaidHello(alert: UnsafeMutablePointer<Int32>?) -> Int32 {
        guard case .server(let context, _) = role, let expected = context.serverName else {
            return SSL_CLIENT_HELLO_SUCCESS
        }
        switch ServerName(inHelloOf: ssl) {
        case .name(let name) where name.lowercased() == expected:
            return SSL_CLIENT_HELLO_SUCCESS
        case .name(let name):
            fail(
                TLSError(.serverNameMismatch(name), "the client asked for \"\(name)\" instead of \"\(expected)\""))
        case .missing:
            fail(
                TLSError(.serverNameMismatch(""), "the client sent no server name instead of \"\(expected)\"")
            )
        case .malformed:
            fail(TLSError(.serverNameMismatch(""), "the client's server name is malformed"))
        }
        alert?.pointee = SSL_AD_UNRECOGNIZED_NAME
        return SSL_CLIENT_HELLO_ERROR
    }
}
