// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHTTP1
import CountersignParents
import NIOCore
import NIOPosix
import CountersignTLS

/// Why there is no connection to an origin, or no response on it. The origin, a parent or the network is at fault,
/// except for ``Code/ownFault``.
/// Errors with the same code are equal.
package struct UpstreamError: CodedError {
    /// The steps to an origin, in their order.
    package enum Step: String, Equatable, Sendable {
        case resolve
        case tcp
        /// TLS to a parent.
        case parentTLS
        /// The tunnel through a parent.
        case tunnel
        case tls
    }

    package enum Code: Equatable, Sendable {
        case nameNotFound
        /// The name of an unlisted site leads to this machine.
        case localAddress
        /// The connection leads to this proxy itself.
        case loop
        case connectFailed
        case connectTimedOut
        /// A parent does not speak its protocol, or ended the connection.
        case tunnelFailed
        /// A parent does not open the tunnel.
        case tunnelRefused
        /// A parent closed the connection after a response; the next request needs another one.
        case tunnelInterrupted
        /// There is no route to the origin: a script or a setting permits none.
        case noRoute
        case tunnelTimedOut
        /// The certificate of a parent does not verify.
        case parentNotTrusted
        /// The TLS handshake failed, or the origin or the parent does not speak TLS.
        case tlsFailed
        /// The origin ended the connection with a TLS alert.
        case tlsAlert
        case tlsTimedOut
        /// The bytes received are not HTTP/1, or are ambiguous.
        case malformedResponse
        /// The origin closed the connection before the first byte of a response.
        case closedBeforeResponse
        /// The origin closed the connection in the middle of a response.
        case closedInResponse
        /// The origin has certainly not processed the request, so any request may be sent again (RFC 9113 §8.7).
        case notProcessed
        /// The origin answers the request over HTTP/1.1 only.
        case needsHTTP1
        /// The network of the connection is gone.
        case networkGone
        /// The origin sent nothing for too long.
        case timedOut
        /// The client, a trust exception or the delegate refused the origin's certificate.
        case notTrusted
        /// The origin's leaf certificate is not the one that was accepted earlier.
        case trustChanged
        /// This program was about to send something other than the content that it had announced.
        case ownFault
    }

    package let code: Code
    package let detail: String
    /// The client identity that the origin rejected with an alert, if that is why it ended the connection.
    package let rejectedIdentity: Identity?
    /// The response of the parent that does not open the tunnel, if it was one.
    package let parentResponse: ConnectResponse?
    /// The status of the response that is incomplete or refused, if it was read.
    package let status: Int?
    /// The step that failed, if the connection was still being opened.
    package private(set) var step: Step?
    /// The peer of that step, `host:port`.
    package private(set) var place: String?

    package init(
        _ code: Code, _ detail: String, rejecting identity: Identity? = nil, response: ConnectResponse? = nil,
        status: Int? = nil
    ) {
        self.code = code
        self.detail = detail
        parentResponse = response
        rejectedIdentity = identity
        self.status = status
    }

    /// The same error, of the given step. An error keeps the step that it has.
    func inStep(_ step: Step, at place: String) -> UpstreamError {
        guard self.step == nil else { return self }
        var error = self
        error.step = step
        error.place = place
        return error
    }

    /// Whether a parent opens no tunnel to such a place for any client. It may forward requests there.
    package var refusesTunnel: Bool {
        guard code == .tunnelRefused, let status = parentResponse?.status else { return false }
        return switch status {
        case 407, 408, 429: false
        case 400..<500, 501: true
        default: false
        }
    }

    /// The failure of a step that has exceeded its limit.
    static func timedOut(in step: Step, at place: String) -> UpstreamError {
        switch step {
        case .resolve, .tcp: UpstreamError(.connectTimedOut, "\(place): no answer to the connection attempt")
        case .parentTLS: UpstreamError(.tlsTimedOut, "the parent at \(place): the TLS handshake timed out")
        case .tunnel: UpstreamError(.tunnelTimedOut, "\(place): the tunnel was not established in time")
        case .tls: UpstreamError(.tlsTimedOut, "\(place): the TLS handshake timed out")
        }
    }

    /// Converts an error of NIO or the TLS handler.
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
            return timedOut(in: .tcp, at: place)
        case let error as IOError:
            return UpstreamError(.connectFailed, "\(place): \(error.plainReason)")
        case let error as TLSError:
            return tls(error, at: place)
        default:
            return UpstreamError(.connectFailed, "\(place): \(error)")
        }
    }

    /// Alerts about a client's certificate (RFC 8446 §6.2) that another certificate may avoid: bad_certificate,
    /// certificate_revoked, certificate_expired, certificate_unknown.
    private static let certificateAlerts: Set<UInt8> = [42, 44, 45, 46]

    /// The error for a TLS error on a connection on which the client has shown `identity`.
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
    /// `connection refused`: the reason alone, without the name of the system call.
    fileprivate var plainReason: String {
        String(cString: strerror(errnoCode)).lowercased()
    }
}
