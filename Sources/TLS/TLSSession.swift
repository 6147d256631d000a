// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// A session that a later connection to the same host may go on with (RFC 8446 §2.2, RFC 5077). The caller keys it by
/// everything that must be equal before a connection may be reused.
///
/// The pointer is unsafe to share only in name: an SSL_SESSION counts its references atomically, and is not written
/// once a connection gives it out, except for a flag that ends its use.
package final class TLSSession: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer
    /// The host it was made with; at any other it is not offered.
    package let host: String

    /// Takes over one reference.
    init(adopting pointer: OpaquePointer, host: String) {
        self.pointer = pointer
        self.host = host
    }

    deinit { SSL_SESSION_free(pointer) }
}
