// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// A session that a later connection to the same host may resume (RFC 8446 §2.2, RFC 5077). The caller stores it under
/// a key of everything that must be equal before a connection may be reused.
///
/// `nonisolated(unsafe)` is safe here: the references of an SSL_SESSION are counted atomically, and a session is not
/// modified after a connection has returned it, except for a flag that ends its use.
package final class TLSSession: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer
    /// The host of the session; it is not offered to any other.
    package let host: String
    /// The stapled response of the original handshake. A resumed handshake has none.
    let staple: ChainVerifier.Staple

    /// Takes ownership of one reference.
    init(adopting pointer: OpaquePointer, host: String, staple: ChainVerifier.Staple) {
        self.pointer = pointer
        self.host = host
        self.staple = staple
    }

    deinit { SSL_SESSION_free(pointer) }
}
