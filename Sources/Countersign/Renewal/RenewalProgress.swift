// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignEnrollment

/// Returns the trust anchors of issued certificates that the user chooses among the CA certificates of a server that
/// has been verified (RFC 7030 §4.1.3). Throws if the user chooses none.
package typealias AnchorConfirmation = @Sendable (ESTPublishedAuthorities) throws -> [Certificate]

/// A step of a renewal that takes time, or a result short of the expected.
package enum RenewalProgress: Equatable, Sendable, Codable {
    /// Another process is renewing this identity; its result will be used.
    case waitingForOtherProcess
    case asking(server: String)
    /// The server has not decided yet. The next request is due at that time.
    case waiting(server: String, until: Int64)
    /// The server's CSR attributes (RFC 7030 §4.5.2) are unreadable; the request is made without them.
    case attributesNotRead(server: String, reason: String)
    /// The server wants attributes in the request that this program cannot supply.
    case attributesNotSupplied(server: String, names: [String])
    /// The server did not request a certificate, or cannot use the new one in TLS, so that it could not be verified
    /// before its first use.
    case notVerified(server: String)
    /// The new certificate is in use, but its chain could not be written to the file.
    case fileNotWritten(reason: String)
    /// A person has to open this page.
    case pageToOpen(url: String)
}

extension RenewalProgress {
    /// The result short of the expected, for a warning.
    package var warning: String? {
        switch self {
        case .waitingForOtherProcess, .asking, .waiting, .pageToOpen: nil
        case .attributesNotRead(let server, let reason):
            "the CSR attributes of \(server) are unreadable, so the request is made without them: \(reason)"
        case .attributesNotSupplied(let server, let names):
            "\(server) wants attributes in the request that cannot be supplied: \(names.joined(separator: ", "))"
        case .notVerified(let server):
            "the new certificate is in use but was not tested: \(server) did not complete the test handshake"
        case .fileNotWritten(let reason):
            "the new certificate is in use, but its chain file was not written: \(reason)"
        }
    }
}

/// The result of a renewal that did not fail.
package enum RenewalOutcome: Equatable, Sendable, Codable {
    /// The identity's new leaf.
    case renewed(Certificate)
    /// The server has not decided yet; ask again at that time.
    case pending(until: Int64)
}

extension Error {
    /// The task was cancelled, which is not a failure of the renewal.
    var isCancellation: Bool { self is CancellationError || (self as? EnrollmentError)?.code == .cancelled }
}
