// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHTTP1
import NIOCore
import NIOPosix
import CountersignTLS

/// Why there is no connection to an origin, or no response on it. The origin or the network is at fault.
package struct UpstreamError: Error, Equatable, CustomStringConvertible {
    package enum Code: Equatable, Sendable {
        case nameNotFound
        case connectFailed
        case connectTimedOut
        /// The TLS handshake failed, or the origin does not speak TLS.
        case tlsFailed
        /// The origin ended the connection with a TLS alert.
        case tlsAlert
        case tlsTimedOut
        /// What came is not HTTP/1, or is ambiguous.
        case malformedResponse
        /// Closed before a byte of a response.
        case closedBeforeResponse
        /// Closed in the middle of a response.
        case closedInResponse
        /// Nothing came for too long.
        case timedOut
        /// Whoever was asked about the origin's certificate refused to go on.
        case notTrusted
        /// The origin's leaf is not the one that was agreed to.
        case trustChanged
    }

    package let code: Code
    package let detail: String
    /// The client identity for which the origin ended the connection, where it said so.
    package let rejectedIdentity: Identity?

    package init(_ code: Code, _ detail: String, rejecting identity: Identity? = nil) {
        self.code = code
        self.detail = detail
        rejectedIdentity = identity
    }

    package static func == (left: Self, right: Self) -> Bool { left.code == right.code }
    package var description: String { detail }

    /// What a thrown error of the network means here.
    package static func connecting(_ error: any Error, to place: String) -> UpstreamError {
        switch error {
        case let error as UpstreamError:
            return error
        case let error as NIOConnectionError:
            if let lookup = (error.dnsAError ?? error.dnsAAAAError) as? UpstreamError, error.connectionErrors.isEmpty {
                return lookup
            }
            if let first = error.connectionErrors.first?.error as? IOError {
                return UpstreamError(.connectFailed, "\(place): \(first.plainReason)")
            }
            return UpstreamError(.connectFailed, "\(place): no address answers")
        case ChannelError.connectTimeout:
            return UpstreamError(.connectTimedOut, "\(place): no answer to the connection attempt")
        case let error as IOError:
            return UpstreamError(.connectFailed, "\(place): \(error.plainReason)")
        case let error as TLSError:
            return tls(error, at: place)
        default:
            return UpstreamError(.connectFailed, "\(place): \(error)")
        }
    }

    /// Alerts about a client's certificate that another certificate may mend (RFC 8446 §6.2): bad_certificate,
    /// certificate_revoked, certificate_expired, certificate_unknown.
    private static let certificateAlerts: Set<UInt8> = [42, 44, 45, 46]

    /// What a TLS error means here, on a connection where `identity` was shown.
    package static func tls(_ error: TLSError, at place: String, shown identity: Identity? = nil) -> UpstreamError {
        switch error.code {
        case .peerAlert(let alert, _):
            UpstreamError(
                .tlsAlert, "\(place): \(error.detail)",
                rejecting: certificateAlerts.contains(alert) ? identity : nil)
        case .serverNotTrusted: UpstreamError(.notTrusted, "\(place): \(error.detail)")
        default: UpstreamError(.tlsFailed, "\(place): \(error.detail)")
        }
    }
}

extension IOError {
    /// `connection refused`, without the call's name.
    fileprivate var plainReason: String {
        String(cString: strerror(errnoCode)).lowercased()
    }
}
