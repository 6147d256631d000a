// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates

/// A session that a later connection to the same host may go on with (RFC 8446 §2.2, RFC 5077). The caller keys it by
/// everything that must be equal before a connection may be reused.
///
/// The pointer is unsafe to share only in name: an SSL_SESSION counts its references atomically, and is not written
/// once a connection gives it out, except for a flag that ends its use.
package final class TLSSession: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer
    /// The host it was made with; at any other it is not offered.
    package let host: String
    /// What came with the chain when the session was made; a resumed handshake brings nothing.
    let staple: ChainVerifier.Staple

    /// Takes over one reference.
    init(adopting pointer: OpaquePointer, host: String, staple: ChainVerifier.Staple) {
        self.pointer = pointer
        self.host = host
        self.staple = staple
    }

    deinit { SSL_SESSION_free(pointer) }
}
