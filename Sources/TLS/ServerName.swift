// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Whether a canonical host is an IP address: it contains a colon, or its last label consists of digits (RFC 3986
/// §3.2.2).
func isIPAddress(_ host: String) -> Bool {
    if host.utf8.contains(UInt8(ascii: ":")) { return true }
    guard let last = host.split(separator: ".", omittingEmptySubsequences: false).last else { return false }
    return !last.isEmpty && last.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
}

/// The server name in a ClientHello (RFC 6066 §3).
enum ServerName: Equatable {
    case missing
    case malformed
    case name(String)

    /// Reads the extension of the ClientHello that `ssl` is processing.
    init(inHelloOf ssl: OpaquePointer) {
        var start: UnsafePointer<UInt8>?
        var length = 0
        guard SSL_client_hello_get0_ext(ssl, UInt32(TLSEXT_TYPE_server_name), &start, &length) == 1 else {
            self = .missing
            return
        }
        self.init(extension: Array(UnsafeBufferPointer(start: start, count: length)))
    }

    /// Reads a ServerNameList with exactly one host_name, as every client sends it.
    init(extension bytes: [UInt8]) {
        let nameStart = 5
        guard bytes.count > nameStart,
            Int(bytes[0]) << 8 | Int(bytes[1]) == bytes.count - 2, bytes[2] == UInt8(TLSEXT_NAMETYPE_host_name),
            Int(bytes[3]) << 8 | Int(bytes[4]) == bytes.count - nameStart,
            bytes[nameStart...].allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            self = .malformed
            return
        }
        self = .name(String(decoding: bytes[nameStart...], as: UTF8.self))
    }
}
