// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl
import CountersignCOpenSSL
import CountersignCertificates
import CountersignCryptography

/// Explains why a transfer failed, in terms of the server and the user rather than of libcurl.
struct CurlTransferFault {
    let transfer: CurlTransfer
    let tls: ServerTLS
    let access: ESTAuthentication
    /// Seconds since 1970.
    let time: Int64

    /// The error; nil if a complete response arrived that is not a 401. `libcurlMessage` may be empty.
    func error(_ code: CURLcode, libcurlMessage: String) -> EnrollmentError? {
        // The server has rejected the credential, even if the rest of its response is incomplete.
        if transfer.rejections > 1 { return unauthorized }
        if let stop = transfer.stop { return error(stop) }
        if code == CURLE_OK, transfer.response.status == 401 { return unauthorized }
        if code == CURLE_OK, transfer.headIsWhole, transfer.response.status != 0 { return identityRejectedInHTTP }
        if code == CURLE_ABORTED_BY_CALLBACK { return error(.cancelled) }
        if let trust = tls.trust, !trust.isTrusted { return untrusted(trust) }
        if let alert = tls.alert { return refused(by: alert) }
        return error(of: code, libcurlMessage.isEmpty ? String(cString: csn_curl_easy_strerror(code)) : libcurlMessage)
    }

    private func error(of code: CURLcode, _ libcurlMessage: String) -> EnrollmentError {
        let words = PrintableText.longer(libcurlMessage)
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            return EnrollmentError(.unreachable, "no IP address for \"\(tls.host)\": \(words)")
        case CURLE_COULDNT_CONNECT: return EnrollmentError(.unreachable, "no connection to the server: \(words)")
        case CURLE_OPERATION_TIMEDOUT: return EnrollmentError(.timedOut, "no response in time \(place): \(words)")
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_PEER_FAILED_VERIFICATION:
            return EnrollmentError(
                .handshakeFailed, "the TLS handshake failed: \(words)", hint: cutHint,
                mayConcernIdentity: identityIsUnanswered)
        case CURLE_OK, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE,
            CURLE_SSL_SHUTDOWN_FAILED:
            return cut
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_WRITE_ERROR, CURLE_BAD_CONTENT_ENCODING:
            return EnrollmentError(.malformedResponse, "the server's response is not HTTP/1.1: \(words)")
        default: return EnrollmentError(.unavailable, "libcurl (\(code.rawValue)): \(words)")
        }
    }

    private func error(_ stop: CurlTransfer.Stop) -> EnrollmentError {
        switch stop {
        case .bodyTooLong:
            EnrollmentError(
                .malformedResponse,
                "the server sent more than \(CurlTransfer.maximumBodyBytes) bytes, beginning with \(transfer.response.summary)",
                statusCode: transfer.response.status)
        case .credentialRejected: unauthorized
        case .otherLink, .noLink:
            EnrollmentError(.handshakeFailed, "the TLS connection has no channel binding to link the request to")
        case .requestNotMade(let detail):
            EnrollmentError(.configuration, "the certification request could not be made: \(detail)")
        case .endedEarly:
            tls.alert.map(refused) ?? cut
        case .cancelled: EnrollmentError(.cancelled, "cancelled")
        }
    }

    // MARK: Credential

    private var unauthorized: EnrollmentError {
        let offered = transfer.response.fields.filter { $0.name == "www-authenticate" }.map { field in
            PrintableText.plain(field.value.prefix { $0 != " " && $0 != "," })
        }
        let schemes = offered.isEmpty ? "no scheme" : offered.joined(separator: ", ")
        let answer = transfer.rejections > 1 ? access.answer(toBearer: transfer.wasAskedForToken) : nil
        let detail =
            if answer == .token, let token = access.token {
                "the server rejected the access token \"\(token.name)\""
            } else if let credential = access.credential {
                transfer.rejections > 1
                    ? "the server rejected credential \"\(credential.name)\""
                    : "the server offers \(schemes), and credential \"\(credential.name)\" answers Basic and Digest only"
            } else if let token = access.token {
                "the server offers \(schemes), and the access token \"\(token.name)\" answers Bearer only"
            } else if tls.hasShownIdentity {
                "the server accepts the identity only together with a user name and password (\(schemes))"
            } else {
                "the server requires a user name and password (\(schemes)), and none was given"
            }
        return EnrollmentError(.unauthorized, detail, statusCode: 401, rejects: answer)
    }

    // MARK: Certificates

    private func untrusted(_ trust: ServerTrust) -> EnrollmentError {
        let leaf = trust.leaf.map { ", which presented \"\($0)\" (\($0.fingerprintText)) by \"\($0.issuer)\"" } ?? ""
        return EnrollmentError(
            .untrustedServer, "the server \"\(tls.host)\"\(leaf), is not trusted: \(trust)",
            hint: access.server.text)
    }

    /// Alerts about the identity (RFC 8446 §6.2): bad_certificate to certificate_unknown.
    private static let identityAlerts: ClosedRange<UInt8> = 42...46
    /// unknown_ca, access_denied, decrypt_error.
    private static let furtherIdentityAlerts: [UInt8] = [48, 49, 51]
    /// Alerts that demand an identity: handshake_failure, certificate_required.
    private static let demandAlerts: [UInt8] = [40, 116]

    private func refused(by alert: UInt8) -> EnrollmentError {
        let name = ServerTLS.name(ofAlert: alert)
        let isAboutIdentity = Self.identityAlerts.contains(alert) || Self.furtherIdentityAlerts.contains(alert)
        if tls.hasShownIdentity, isAboutIdentity {
            return EnrollmentError(.identityRefused, "the server refused the identity\(identityName): \(name)")
        }
        if tls.wasAskedForIdentity, !tls.hasShownIdentity, isAboutIdentity || Self.demandAlerts.contains(alert) {
            return EnrollmentError(
                .unauthorized, "the server requires an identity, and none was given: it sent the TLS alert \"\(name)\"")
        }
        if identityIsUnanswered, Int32(alert) != SSL_AD_INTERNAL_ERROR {
            return EnrollmentError(
                .identityUnusable,
                "the server cannot use the identity\(identityName): it sent the TLS alert \"\(name)\"")
        }
        return EnrollmentError(.handshakeFailed, "the server ended the connection with the TLS alert \"\(name)\"")
    }

    /// The connection ended after the identity was presented and before the server accepted it.
    private var identityIsUnanswered: Bool {
        tls.hasShownIdentity && (!tls.hasVerdict || transfer.stop == .endedEarly)
    }

    /// For insertion into a sentence: begins with a space, or is empty.
    private var identityName: String {
        guard let identity = access.identity else { return "" }
        let obstacle = identity.obstacle(acceptableIssuers: [], at: time).map { ", \($0)" } ?? ""
        return " \"\(identity.name)\" (\(identity.leaf)\(obstacle))"
    }

    /// nginx completes the handshake and reports the certificate's rejection in HTTP.
    private var identityRejectedInHTTP: EnrollmentError? {
        let response = transfer.response
        guard tls.hasShownIdentity, response.status == 400 || response.status == 495,
            String(decoding: response.body.prefix(2000), as: UTF8.self).contains("SSL certificate error")
        else { return nil }
        return EnrollmentError(
            .identityRefused, "the server refused the identity\(identityName): it sent \(response.summary)",
            statusCode: response.status)
    }

    // MARK: Cut

    private var cut: EnrollmentError {
        EnrollmentError(
            .cut, "the connection was cut \(place)", hint: cutHint, mayConcernIdentity: identityIsUnanswered)
    }

    private var place: String {
        if transfer.response.status == 0 { return "before any response" }
        if !transfer.headIsWhole { return "inside the response's head (\(transfer.response.status))" }
        let length = transfer.response.field("content-length").map { " of \(PrintableText.plain($0))" } ?? ""
        return
            "inside the response's body (\(transfer.response.status), \(transfer.response.body.count)\(length) bytes)"
    }

    private var cutHint: String? {
        tls.hasShownIdentity && transfer.response.status == 0
            ? "the identity\(identityName) was presented just before: the server may have refused it without a response"
            : nil
    }
}
