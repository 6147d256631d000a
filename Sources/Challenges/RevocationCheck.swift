// SPDX-License-Identifier: Apache-2.0

/// The treatment of the revocation status of a server's certificate: the option `revocation=` of a site.
package enum RevocationCheck: String, CaseIterable, Sendable {
    /// Asks. If the status cannot be learned, continues.
    case soft
    /// Asks. If the status cannot be learned, the certificate does not verify.
    case require
    /// Does not ask. A stapled response and the local revocation lists count nevertheless.
    case off
}
