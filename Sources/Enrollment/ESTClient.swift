// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography

/// A client of one EST server (RFC 7030, as corrected by RFC 8951). Calls run one after the other on a thread of their
/// own, and each takes at most 30 seconds.
///
/// Does not implement `/fullcmc` and `/serverkeygen` (RFC 7030 §4.3, §4.4), redirects (§3.2.1), and id-kp-cmcRA in
/// place of the host's name (§3.6.1).
package final class ESTClient: Sendable {
    package let endpoint: ESTEndpoint
    package let access: ESTAuthentication
    private let now: @Sendable () -> Int64
    private let worker: EnrollmentWorker

    /// The longest wait that a server may ask for, in seconds: a day.
    package static let longestRetryAfter: Int64 = 86_400
    /// The wait after a 202 without Retry-After, in seconds.
    static let usualRetryAfter: Int64 = 60
    static let callLimit = Duration.seconds(30)

    /// `now` returns the time at which certificates are verified, in seconds since 1970. Throws `configuration` if
    /// there is no anchor for the server, an explicit anchor is not a self-signed CA certificate, or the credential
    /// cannot be sent.
    package convenience init(
        endpoint: ESTEndpoint, access: ESTAuthentication, now: @escaping @Sendable () -> Int64
    ) throws(EnrollmentError) {
        try self.init(endpoint: endpoint, access: access, limit: Self.callLimit, now: now)
    }

    init(
        endpoint: ESTEndpoint, access: ESTAuthentication, limit: Duration, now: @escaping @Sendable () -> Int64
    ) throws(EnrollmentError) {
        try Self.check(access)
        self.endpoint = endpoint
        self.access = access
        self.now = now
        let tls = ServerTLS(
            host: endpoint.origin.host, verifier: try access.server.verifier(refusing: access.refused),
            identity: access.identity, now: now)
        worker = EnrollmentWorker(
            try CurlSession(tls: tls, access: access, limit: limit, now: now), tls: tls)
    }

    private static func check(_ access: ESTAuthentication) throws(EnrollmentError) {
        var explicit = access.anchors
        if case .explicit(let anchors) = access.server {
            guard !anchors.isEmpty else {
                throw EnrollmentError(
                    .configuration, "an EST server is verified by an explicit trust anchor, and none was given")
            }
            explicit += anchors
        }
        for anchor in explicit where !anchor.isCertificateAuthority || !anchor.isSelfSigned {
            throw EnrollmentError(
                .configuration, "the trust anchor \"\(anchor)\" is not a self-signed certificate authority",
                hint: "give the root of its chain")
        }
        if let token = access.token, token.bound != nil {
            throw EnrollmentError(
                .configuration, "the access token \"\(token.name)\" is bound to a key (DPoP), which EST has no use for")
        }
        if let token = access.token, !TokenCredential.isToken(token.token) {
            throw EnrollmentError(.configuration, "the access token \"\(token.name)\" cannot be sent (RFC 6750 §2.1)")
        }
        guard let credential = access.credential else { return }
        guard credential.password.withBytes({ !$0.contains(0) }), !credential.user.isEmpty,
            !credential.user.contains(":"), !credential.user.contains("\0")
        else {
            throw EnrollmentError(
                .configuration, "credential \"\(credential.name)\" cannot be sent by Basic or Digest (RFC 7617 §2)")
        }
    }

    // MARK: Calls

    /// The server's CA certificates (`/cacerts`). Throws `authorityChanged` if they contain no anchor and no anchor
    /// vouches for any of them.
    package func certificationAuthorities() async throws(EnrollmentError) -> ESTCertificationAuthorities {
        try ESTCertificationAuthorities(
            try await publishedAuthorities().certificates, anchors: access.anchors, at: now())
    }

    /// The server's CA certificates (`/cacerts`), whether or not an anchor vouches for them.
    package func publishedAuthorities() async throws(EnrollmentError) -> ESTPublishedAuthorities {
        try await worker.run { [endpoint] session, tls, cancellation throws(EnrollmentError) in
            let response = try session.call(endpoint.url(for: .cacerts), unless: cancellation).response
            guard response.status == 200 else { throw response.refusal("/cacerts") }
            return ESTPublishedAuthorities(
                certificates: try response.certificates("CA certificates"), serverChain: tls.chain)
        }
    }

    /// The attributes that the server wants in requests (`/csrattrs`); nil if it has none (204, 404).
    package func requestAttributes() async throws(EnrollmentError) -> CSRAttributes? {
        try await worker.run { [endpoint] session, _, cancellation throws(EnrollmentError) -> CSRAttributes? in
            let response = try session.call(endpoint.url(for: .csrattrs), unless: cancellation).response
            if response.status == 204 || response.status == 404 { return nil }
            guard response.status == 200 else { throw response.refusal("/csrattrs") }
            return response.body.isEmpty ? nil : try response.requestAttributes()
        }
    }

    /// The kind of enrolment.
    package enum Enrollment: Equatable, Sendable {
        /// A first certificate (`/simpleenroll`).
        case enroll
        /// A renewal (`/simplereenroll`), authenticated by the identity to renew.
        case reenroll

        fileprivate var operation: ESTEndpoint.Operation {
            switch self {
            case .enroll: .simpleenroll
            case .reenroll: .simplereenroll
            }
        }
    }

    /// Requests a certificate. Accepts it only if it is for the request's key, chains to `authorities`, is valid now
    /// and is for client authentication.
    package func enroll(
        _ kind: Enrollment, _ request: ESTRequest, authorities: ESTCertificationAuthorities
    ) async throws(EnrollmentError) -> ESTOutcome {
        try await worker.run { [endpoint, now] session, _, cancellation throws(EnrollmentError) in
            let operation = kind.operation
            let answer = try session.call(endpoint.url(for: operation), sending: request, unless: cancellation)
            let response = answer.response
            switch response.status {
            case 200:
                let issued = try response.certificates("the requested certificate")
                return .issued(try authorities.chain(from: issued, for: request.key, at: now()))
            case 202:
                let seconds = response.retryAfter(now: now()) ?? Self.usualRetryAfter
                return .pending(retryAfter: seconds, request: answer.request ?? [])
            default: throw response.refusal("/\(operation.rawValue)", now: now(), of: .request)
            }
        }
    }

    /// Authenticates with the identity of ``access`` on a new connection and reads a response. Throws `identityRefused`
    /// if the server rejects it. Returns false if the server did not request a certificate, so that nothing is proved.
    package func proveIdentity() async throws(EnrollmentError) -> Bool {
        var shown = access
        shown.credential = nil
        shown.token = nil
        guard shown.identity != nil else { throw EnrollmentError(.configuration, "there is no identity to try") }
        let client = try ESTClient(endpoint: endpoint, access: shown, now: now)
        return try await client.worker.run { [endpoint] session, tls, cancellation throws(EnrollmentError) in
            let response = try session.call(endpoint.url(for: .cacerts), unless: cancellation).response
            guard response.status == 200 else { throw response.refusal("/cacerts") }
            return tls.hasShownIdentity
        }
    }
}

extension ESTResponse {
    /// The error for a response that refuses `operation` or does not belong to it.
    func refusal(
        _ operation: String, now: Int64? = nil, of object: EnrollmentError.Object? = nil
    ) -> EnrollmentError {
        let wait = now.flatMap { retryAfter(now: $0) }
        switch status {
        case 300..<400:
            let target = field("location").map { " to \(PrintableText.quote($0))" } ?? ""
            return EnrollmentError(
                .refused, "\(operation) is redirected\(target) (\(status)), which is not followed",
                hint: "if that is the EST server, use its address", statusCode: status)
        case 200..<300: return malformed("the server answered \(operation) with \(summary)")
        default:
            // Some servers send 403 for a locked account. The password must not be sent again and again.
            let object = status == 403 ? answered ?? object : object
            let error = EnrollmentError(
                .refused, "the server refused \(operation): \(summary)", statusCode: status, retryAfter: wait,
                rejects: object)
            return error.isTransient
                ? EnrollmentError(error.code, error.detail, statusCode: status, retryAfter: wait) : error
        }
    }
}
