// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Detects whether a TLS 1.3 server rejects the client's identity. In TLS 1.3, the client's handshake completes before
/// the server has verified the certificate (RFC 8446 §4.4.2.4).
///
/// If the request is sent immediately, a server that rejects the identity has closed the socket, and libcurl fails
/// without reading the alert. Servers send session tickets after they accept a certificate. This type therefore waits
/// for a ticket or an alert and reads it.
enum IdentityRejectionCheck {
    /// The delay for a server that sends neither, once per connection.
    private static let waitMilliseconds: Int32 = 500

    /// Returns false if the server has closed the connection. `socket` is the non-blocking socket of `ssl`.
    static func isAccepted(_ ssl: OpaquePointer, socket: Int32) -> Bool {
        guard SSL_version(ssl) == TLS1_3_VERSION else { return true }
        var watched = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&watched, 1, waitMilliseconds) > 0 else { return true }
        return read(ssl, socket) ?? true
    }

    /// The local port of a socket. libcurl reports the port of a connection, but not the socket.
    static func localPort(of socket: Int32) -> Int32? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let known = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        guard known == 0 else { return nil }
        // The port has the same offset for IPv4 and IPv6 (RFC 3493 §3.3).
        let bytes = withUnsafeBytes(of: &address) { Array($0[2..<4]) }
        return Int32(bytes[0]) << 8 | Int32(bytes[1])
    }

    /// Nil if there is not enough memory. Uses BIOs of its own, because libcurl's BIOs only work inside libcurl's
    /// calls.
    private static func read(_ ssl: OpaquePointer, _ socket: Int32) -> Bool? {
        guard let reading = SSL_get_rbio(ssl), let writing = SSL_get_wbio(ssl),
            let input = BIO_new_socket(socket, BIO_NOCLOSE)
        else { return nil }
        guard let output = BIO_new(BIO_s_mem()) else {
            BIO_free(input)
            return nil
        }
        BIO_up_ref(reading)
        BIO_up_ref(writing)
        BIO_up_ref(output)
        SSL_set0_rbio(ssl, input)
        SSL_set0_wbio(ssl, output)
        ERR_clear_error()
        var byte: UInt8 = 0
        let count = SSL_peek(ssl, &byte, 1)
        let isOpen = count > 0 || SSL_get_error(ssl, count) == SSL_ERROR_WANT_READ
        ERR_clear_error()
        SSL_set0_rbio(ssl, reading)
        SSL_set0_wbio(ssl, writing)
        defer { BIO_free(output) }
        return isOpen && flush(output, to: socket)
    }

    /// Sends the bytes that OpenSSL wrote meanwhile: the response to a key update or to a post-handshake certificate
    /// request.
    private static func flush(_ memory: OpaquePointer, to socket: Int32) -> Bool {
        var start: UnsafeMutableRawPointer?
        let count = BIO_ctrl(memory, BIO_CTRL_INFO, 0, &start)
        guard count > 0, let start else { return true }
        return send(socket, start, count, Int32(MSG_NOSIGNAL)) == count
    }
}
