// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCCurl
import CountersignCOpenSSL
import CountersignChallenges
import CountersignCryptography
import CountersignRouting

/// libcurl as the client of one EST server: one handle, which reuses its connection for several calls. Calls block, and
/// only one may run at a time.
///
/// https only, by the route of ``ControlRoutes``; no redirects, `.netrc`, cookies or TLS session resumption. A token or
/// credential answers one 401 per call, with Bearer or Digest if it is offered and Basic otherwise; a second 401 ends
/// the call.
final class CurlSession {
    private let handle: UnsafeMutableRawPointer
    private let tls: ServerTLS
    private let access: ESTAuthentication
    private let limit: Duration
    private let now: @Sendable () -> Int64
    /// The kind of link of the last connection.
    private var linkKind = ConnectionLink.Kind.exporter
    /// libcurl writes its error message here.
    private let errorBuffer = UnsafeMutableBufferPointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    /// `limit` is for one call; `now` is in seconds since 1970.
    init(
        tls: ServerTLS, access: ESTAuthentication, limit: Duration, now: @escaping @Sendable () -> Int64
    ) throws(EnrollmentError) {
        do throws(EnrollmentError) {
            handle = try CurlReceiver.makeHandle()
        } catch {
            errorBuffer.deallocate()
            throw error
        }
        self.tls = tls
        self.access = access
        self.limit = limit
        self.now = now
        errorBuffer.initialize(repeating: 0)
    }

    deinit {
        csn_curl_easy_cleanup(handle)
        errorBuffer.deallocate()
    }

    /// A response and the certification request that it answers.
    struct Answer {
        let response: ESTResponse
        /// DER; nil for a GET.
        let request: [UInt8]?
    }

    /// Sends a GET, or a POST if there is a certification request. Throws unless a complete response arrived that is
    /// not a 401.
    func call(
        _ url: String, sending request: ESTRequest? = nil, unless cancellation: Cancellation
    ) throws(EnrollmentError) -> Answer {
        // At most two attempts: the first may find that the connection uses the other kind of link.
        for _ in ConnectionLink.Kind.allCases {
            let transfer = CurlTransfer(tls: tls, body: try body(for: request), cancellation: cancellation)
            let code = try run(url, transfer)
            if case .otherLink(let kind) = transfer.stop {
                linkKind = kind
                continue
            }
            if let fault = CurlTransferFault(transfer: transfer, tls: tls, access: access, time: now()).error(
                code, libcurlMessage: libcurlMessage)
            {
                throw fault
            }
            var response = transfer.response
            response.answered = transfer.rejections > 0 ? access.answer(toBearer: transfer.wasAskedForToken) : nil
            return Answer(response: response, request: transfer.body?.request)
        }
        throw EnrollmentError(.handshakeFailed, "the server changes the TLS version with every connection")
    }

    private func body(for request: ESTRequest?) throws(EnrollmentError) -> RequestBody? {
        guard let request else { return nil }
        do {
            return request.isLinked ? try RequestBody(request, linkedBy: linkKind) : try RequestBody(request)
        } catch {
            throw EnrollmentError(.configuration, "the certification request could not be made: \(error.detail)")
        }
    }

    /// libcurl's error message.
    private var libcurlMessage: String {
        String(decoding: errorBuffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func run(_ url: String, _ transfer: CurlTransfer) throws(EnrollmentError) -> CURLcode {
        csn_curl_easy_reset(handle)
        errorBuffer.initialize(repeating: 0)
        tls.callBegins()
        var fields: UnsafeMutablePointer<curl_slist>?
        defer {
            // Removes the password from the handle.
            csn_curl_easy_reset(handle)
            csn_curl_slist_free_all(fields)
        }
        let route = try route(to: url)
        try prepare(url)
        try authenticate()
        if let body = transfer.body {
            fields = csn_curl_slist_append(fields, "Content-Type: application/pkcs10")
            fields = csn_curl_slist_append(fields, "Expect:")
            try set(csn_curl_set_post(handle, body.storage.baseAddress, body.storage.count))
            try set(csn_curl_set_list(handle, CURLOPT_HTTPHEADER, fields))
        }
        transfer.handle = handle
        try transfer.listen(on: handle)
        try listen(transfer.context)
        return try route.performing(handle, within: limit, for: transfer)
    }

    private func route(to url: String) throws(EnrollmentError) -> CurlRoute {
        let parsed: AbsoluteURL
        do throws(HostNameError) {
            parsed = try AbsoluteURL(parsing: url)
        } catch {
            throw EnrollmentError(.configuration, error.detail, hint: error.hint)
        }
        return try CurlRoute(for: parsed.origin, path: parsed.path)
    }

    private func set(_ code: CURLcode) throws(EnrollmentError) { try CurlReceiver.check(code) }

    private func prepare(_ url: String) throws(EnrollmentError) {
        let (seconds, attoseconds) = limit.components
        let milliseconds = max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
        try set(csn_curl_set_error_buffer(handle, errorBuffer.baseAddress))
        try set(csn_curl_set_string(handle, CURLOPT_URL, url))
        try set(csn_curl_set_string(handle, CURLOPT_PROTOCOLS_STR, "https"))
        try set(csn_curl_set_string(handle, CURLOPT_USERAGENT, "countersign"))
        for (option, value) in [
            (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_NETRC, 0), (CURLOPT_NOSIGNAL, 1),
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_TIMEOUT_MS, milliseconds),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)), (CURLOPT_SSL_SESSIONID_CACHE, 0),
            (CURLOPT_SSL_VERIFYPEER, tls.verifier == nil ? 0 : 1),
            (CURLOPT_SSL_VERIFYHOST, tls.verifier == nil ? 0 : 2),
        ] {
            try set(csn_curl_set_long(handle, option, value))
        }
        // libcurl loads no anchors of its own: ServerTLS verifies.
        try set(csn_curl_set_string(handle, CURLOPT_CAPATH, nil))
        try set(csn_curl_set_string(handle, CURLOPT_CAINFO, nil))
        guard tls.verifier != nil, case .explicit(let anchors) = access.server else { return }
        let text = anchors.map(\.pem).joined()
        try set(csn_curl_set_copied_blob(handle, CURLOPT_CAINFO_BLOB, text, text.utf8.count))
    }

    /// Only if the server is verified.
    private func authenticate() throws(EnrollmentError) {
        guard tls.verifier != nil else { return }
        var schemes = 0
        if let token = access.token {
            schemes |= csn_CURLAUTH_BEARER_WHEN_ASKED
            try set(CURLOPT_XOAUTH2_BEARER, token.token)
        }
        if let credential = access.credential {
            schemes |= csn_CURLAUTH_BASIC_OR_DIGEST
            try set(csn_curl_set_string(handle, CURLOPT_USERNAME, credential.user))
            try set(CURLOPT_PASSWORD, credential.password)
        }
        if schemes != 0 { try set(csn_curl_set_long(handle, CURLOPT_HTTPAUTH, schemes)) }
    }

    private func set(_ option: CURLoption, _ secret: Secret) throws(EnrollmentError) {
        try set(CurlRoute.setSecret(handle, option, secret))
    }

    private func listen(_ transfer: UnsafeMutableRawPointer) throws(EnrollmentError) {
        try set(
            csn_curl_set_socket_made(
                handle,
                { context, socket, _ in
                    if let context { CurlTransfer.at(context).made(socket: socket) }
                    return CURL_SOCKOPT_OK
                }, transfer))
        try set(
            csn_curl_set_before_request(
                handle,
                { context, _, _, _, port in
                    guard let context, let handle = CurlTransfer.at(context).handle else {
                        return CURL_PREREQFUNC_ABORT
                    }
                    let ssl = csn_curl_get_openssl(handle).map { OpaquePointer($0) }
                    return CurlTransfer.at(context).requestBegins(ssl: ssl, localPort: port)
                        ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
                }, transfer))
    }
}

extension CurlTransfer {
    fileprivate static func at(_ context: UnsafeMutableRawPointer) -> CurlTransfer {
        Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
    }
}
