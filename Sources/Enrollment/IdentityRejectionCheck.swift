// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What a server thinks of an identity under TLS 1.3, where a client's handshake is over before the server has looked
/// (RFC 8446 §4.4.2.4).
///
/// A request that is sent at once meets a socket that the refusing server has closed, and libcurl then fails without
/// having read the alert. Servers send session tickets after they have accepted: those, or the alert, are waited for
/// and read.
enum IdentityRejectionCheck {
    /// What a server costs that sends neither, once a connection.
    private static let waitMilliseconds: Int32 = 500

    /// False when the server has ended the connection. `socket` is the one under `ssl`, and does not block.
    static func isFavourable(_ ssl: OpaquePointer, socket: Int32) -> Bool {
        guard SSL_version(ssl) == TLS1_3_VERSION else { return true }
        var watched = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&watched, 1, waitMilliseconds) > 0 else { return true }
        return read(ssl, socket) ?? true
    }

    /// libcurl does not tell which of its sockets a connection stands on, but the port.
    static func localPort(of socket: Int32) -> Int32? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let known = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        guard known == 0 else { return nil }
        // The port stands at the same place for IPv4 and IPv6 (RFC 3493 §3.3).
        let bytes = withUnsafeBytes(of: &address) { Array($0[2..<4]) }
        return Int32(bytes[0]) << 8 | Int32(bytes[1])
    }

    /// Nil when there is no memory for it. libcurl's own BIOs work inside its own calls only.
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

    /// What OpenSSL had to say in between: the answer to a key update, or to a second question for the identity.
    private static func flush(_ memory: OpaquePointer, to socket: Int32) -> Bool {
        var start: UnsafeMutableRawPointer?
        let count = BIO_ctrl(memory, BIO_CTRL_INFO, 0, &start)
        guard count > 0, let start else { return true }
        return send(socket, start, count, Int32(MSG_NOSIGNAL)) == count
    }
}
