// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCCurl
import CountersignCOpenSSL
import CountersignCertificates
import CountersignCryptography
import CountersignParents
import CountersignRouting
import Dispatch

/// One request with libcurl to a web server of an organisation, such as the provider of a sign-in, and its response.
///
/// Goes where ``ControlRoutes`` says. No redirects, `.netrc`, cookies or TLS session resumption. The server is verified
/// as an EST server is. Plain http goes to loopback addresses only.
package struct WebExchange: Sendable {
    package let origin: Origin
    /// Path and query, at least `/`.
    package let target: String
    /// The body of a POST; nil for a GET.
    package var body: Secret?
    /// Names and values, without line breaks.
    package var fields: [(name: String, value: Secret)] = []
    package var limit = Duration.seconds(30)
    package var responseBytes = 256 << 10
    /// Whether it does no harm if others read or answer the exchange, so that it may be plain http.
    package var isPublic = false
    /// Whether the response may be compressed. `responseBytes` limits the decompressed size.
    package var acceptsCompression = false
    /// The hops of its route; nil for those of ``ControlRoutes``.
    package var route: CurlRoute?

    package init(_ origin: Origin, target: String) {
        self.origin = origin
        self.target = target
    }

    package struct Response: Sendable {
        package let status: Int
        /// In the order received, the names in lower case.
        package let fields: [(name: String, value: String)]
        package let body: Secret

        package func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    }

    /// Sends the request and waits for the response. Throws `untrustedServer`, `unreachable`, `timedOut`,
    /// `malformedResponse`, `cut`, `cancelled` and others.
    package func run(
        _ anchors: ESTServerAnchors, refusing refused: [Certificate] = [], now: @escaping @Sendable () -> Int64
    ) async throws(EnrollmentError) -> Response {
        let cancellation = Cancellation()
        let result: Result<Response, EnrollmentError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue(label: "countersign.web").async {
                    do throws(EnrollmentError) {
                        continuation.resume(returning: .success(try perform(anchors, refused, now, cancellation)))
                    } catch {
                        continuation.resume(returning: .failure(error))
                    }
                }
            }
        } onCancel: {
            cancellation.cancel()
        }
        return try result.get()
    }

    private func perform(
        _ anchors: ESTServerAnchors, _ refused: [Certificate], _ now: @escaping @Sendable () -> Int64,
        _ cancellation: Cancellation
    ) throws(EnrollmentError) -> Response {
        let isLocal = HostText.isLoopback(origin.host)
        guard isPublic || isLocal || origin.scheme == .https else {
            throw EnrollmentError(.configuration, "\(origin) is not https")
        }
        let tls = ServerTLS(
            host: origin.host, verifier: try anchors.verifier(refusing: refused), identity: nil, now: now)
        let transfer = WebTransfer(tls: tls, limitBytes: responseBytes, cancellation: cancellation)
        let code = try WebHandle().run(self, transfer)
        if let fault = fault(code, transfer, anchors) { throw fault }
        return Response(status: transfer.status, fields: transfer.fields, body: transfer.takeBody())
    }

    private func fault(_ code: CURLcode, _ transfer: WebTransfer, _ anchors: ESTServerAnchors) -> EnrollmentError? {
        if transfer.isTooLong {
            return EnrollmentError(.malformedResponse, "\(origin.host) sent more than \(responseBytes) bytes")
        }
        if let trust = transfer.tls.trust, !trust.isTrusted {
            return EnrollmentError(
                .untrustedServer, "the certificate of \(origin.host) does not verify: \(trust.text)",
                hint: "if your organisation has its own CA, add it with `countersign trust anchor add FILE`")
        }
        switch code {
        case CURLE_OK: return nil
        case CURLE_ABORTED_BY_CALLBACK: return EnrollmentError(.cancelled, "cancelled")
        case CURLE_COULDNT_RESOLVE_HOST: return EnrollmentError(.unreachable, "\(origin.host) has no IP address")
        case CURLE_COULDNT_CONNECT:
            return EnrollmentError(.unreachable, "no connection to \(origin.host), port \(origin.port)")
        case CURLE_OPERATION_TIMEDOUT:
            return EnrollmentError(
                .timedOut, "\(origin.host) did not answer within \(limit.components.seconds) seconds")
        default:
            if let alert = transfer.tls.alert {
                return EnrollmentError(
                    .handshakeFailed, "\(origin.host) ended the connection: \(ServerTLS.name(ofAlert: alert))")
            }
            let words = PrintableText.longer(String(cString: csn_curl_easy_strerror(code)).lowercased())
            return EnrollmentError(.cut, "\(origin.host) sent no complete response: \(words)")
        }
    }
}

/// A handle of libcurl for one request.
private struct WebHandle: ~Copyable {
    private let handle: UnsafeMutableRawPointer

    init() throws(EnrollmentError) { handle = try CurlReceiver.makeHandle() }

    deinit { csn_curl_easy_cleanup(handle) }

    func run(_ exchange: WebExchange, _ transfer: WebTransfer) throws(EnrollmentError) -> CURLcode {
        var lines: UnsafeMutablePointer<curl_slist>?
        defer { csn_curl_slist_free_all(lines) }
        for field in exchange.fields {
            let text = Array("\(field.name): ".utf8)
            let line = Secret(count: text.count + field.value.count + 1) { room in
                room.copyBytes(from: text)
                field.value.withBytes {
                    UnsafeMutableRawBufferPointer(rebasing: room[text.count...]).copyMemory(from: $0)
                }
            }
            lines = line.withBytes { bytes in
                csn_curl_slist_append(lines, bytes.assumingMemoryBound(to: CChar.self).baseAddress)
            }
        }
        lines = csn_curl_slist_append(lines, "Expect:")
        let route: CurlRoute
        if let given = exchange.route {
            route = given
        } else {
            route = try CurlRoute(for: exchange.origin, path: exchange.target)
        }
        try settings(exchange)
        try set(csn_curl_set_list(handle, CURLOPT_HTTPHEADER, lines))
        try transfer.listen(on: handle)
        guard let body = exchange.body else {
            return try route.performing(handle, within: exchange.limit, for: transfer)
        }
        // libcurl does not copy the body.
        return try body.withBytes { bytes throws(EnrollmentError) in
            try set(csn_curl_set_post(handle, bytes.baseAddress, bytes.count))
            return try route.performing(handle, within: exchange.limit, for: transfer)
        }
    }

    private func set(_ code: CURLcode) throws(EnrollmentError) { try CurlReceiver.check(code) }

    private func settings(_ exchange: WebExchange) throws(EnrollmentError) {
        let (seconds, attoseconds) = exchange.limit.components
        let milliseconds = max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
        let scheme = exchange.origin.scheme.rawValue
        for (option, text) in [
            (CURLOPT_URL, "\(scheme)://\(exchange.origin.authority)\(exchange.target)"),
            (CURLOPT_PROTOCOLS_STR, scheme), (CURLOPT_USERAGENT, "countersign"),
        ] {
            try set(csn_curl_set_string(handle, option, text))
        }
        for (option, value) in [
            (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_NETRC, 0), (CURLOPT_NOSIGNAL, 1), (CURLOPT_FORBID_REUSE, 1),
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_TIMEOUT_MS, milliseconds),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)), (CURLOPT_SSL_SESSIONID_CACHE, 0),
            (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
        ] {
            try set(csn_curl_set_long(handle, option, value))
        }
        if exchange.acceptsCompression {
            try set(csn_curl_set_string(handle, CURLOPT_ACCEPT_ENCODING, "gzip, deflate"))
        }
        // libcurl loads no anchors of its own: ServerTLS verifies.
        try set(csn_curl_set_string(handle, CURLOPT_CAPATH, nil))
        try set(csn_curl_set_string(handle, CURLOPT_CAINFO, nil))
    }
}

extension CurlRoute {
    /// The route of a request. Throws `unreachable`.
    init(for origin: Origin, path: String) throws(EnrollmentError) {
        do throws(ParentsError) {
            try self.init(to: origin, path: path)
        } catch {
            throw EnrollmentError(.unreachable, error.detail, hint: error.hint)
        }
    }

    /// Performs the request while `transfer` lives. Throws `unreachable` if a parent is at fault.
    func performing(
        _ handle: UnsafeMutableRawPointer, within limit: Duration, for transfer: CurlReceiver
    ) throws(EnrollmentError) -> CURLcode {
        defer { withExtendedLifetime(transfer) {} }
        do throws(ParentsError) {
            return try perform(handle, within: limit) { _ in transfer.begins() }
        } catch {
            throw EnrollmentError(.unreachable, error.detail, hint: error.hint)
        }
    }
}

/// The response to one running request.
private final class WebTransfer: CurlReceiver {
    private(set) var status = 0
    private(set) var fields: [(name: String, value: String)] = []
    private(set) var isTooLong = false
    /// Of a fixed size, so that no copies are left behind while it fills.
    private let storage: UnsafeMutableRawBufferPointer
    private var count = 0

    private static let maximumFields = 128

    init(tls: ServerTLS, limitBytes: Int, cancellation: Cancellation) {
        storage = .allocate(byteCount: limitBytes, alignment: 1)
        super.init(tls: tls, cancellation: cancellation)
    }

    deinit {
        if let start = storage.baseAddress { OPENSSL_cleanse(start, count) }
        storage.deallocate()
    }

    override func begins() { (status, fields, isTooLong, count) = (0, [], false, 0) }

    override func received(_ line: HeadLine) {
        switch line {
        case .status(let status):
            fields = []
            self.status = status
        case .field(let name, let value):
            if fields.count < Self.maximumFields { fields.append((name, value)) }
        case .end: break
        }
    }

    override func received(body bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= storage.count - count else {
            isTooLong = true
            return false
        }
        UnsafeMutableRawBufferPointer(rebasing: storage[count...]).copyMemory(from: bytes)
        count += bytes.count
        return true
    }

    func takeBody() -> Secret { Secret(storage[..<count]) }
}
