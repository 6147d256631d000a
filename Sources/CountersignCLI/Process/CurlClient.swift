// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl
import CountersignCryptography

/// A client of the proxy for `demo` and `test`: libcurl, using the proxy as any other program would. Blocks the calling
/// thread.
struct CurlClient {
    struct Response {
        /// 0 if there was no response.
        var status = 0
        /// The fields of the last head, in their order, with lower-case names. A proxy that refuses a tunnel sends that
        /// head.
        var fields: [(name: String, value: String)] = []
        /// The start of the content.
        var body = ""
        /// libcurl's error if there was no complete response: `curl: (60) SSL peer certificate …`.
        var failure: String?
        var missingLibrary: MissingLibrary?
        /// The client could not verify the certificate that it was shown.
        var isCertificateRefused = false

        func values(of name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }
    }

    /// `http://host:port`.
    let proxy: String
    /// A PEM file of trust anchors; nil for libcurl's own.
    let trustPath: String?
    let userAgent: String

    private static let timeoutSeconds = 60

    /// Sends a GET. `isCancelled` is called about once per second, on this thread; if it returns true, the request ends
    /// with an error.
    func get(_ url: String, unless isCancelled: @escaping () -> Bool = { false }) -> Response {
        guard let handle = csn_curl_easy_init() else {
            return Response(failure: MissingLibrary.curl.detail, missingLibrary: .curl)
        }
        defer { csn_curl_easy_cleanup(handle) }
        let received = Received(isCancelled)
        let context = Unmanaged.passUnretained(received).toOpaque()
        csn_curl_set_string(handle, CURLOPT_URL, url)
        csn_curl_set_string(handle, CURLOPT_PROXY, proxy)
        csn_curl_set_string(handle, CURLOPT_NOPROXY, "")
        if let trustPath { csn_curl_set_string(handle, CURLOPT_CAINFO, trustPath) }
        csn_curl_set_string(handle, CURLOPT_USERAGENT, userAgent)
        csn_curl_set_long(handle, CURLOPT_TIMEOUT, Self.timeoutSeconds)
        csn_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        csn_curl_set_header(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
                Unmanaged<Received>.fromOpaque(context).takeUnretainedValue().take(headLine: line)
                return size * count
            }, context)
        csn_curl_set_write(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
                let takesMore = Unmanaged<Received>.fromOpaque(context).takeUnretainedValue().take(content: piece)
                return takesMore ? size * count : 0
            }, context)
        csn_curl_set_progress(
            handle,
            { context, _, _, _, _ in
                context.map { Unmanaged<Received>.fromOpaque($0).takeUnretainedValue().isCancelled() } == true ? 1 : 0
            }, context)
        let code = csn_curl_easy_perform(handle)
        var response = received.response
        var status = 0
        csn_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        if status == 0 {
            csn_curl_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &status)
            if status / 100 == 2 { status = 0 }
        }
        response.status = status
        response.body = String(decoding: received.content, as: UTF8.self)
        guard code != CURLE_OK, !(code == CURLE_WRITE_ERROR && received.isFull) else { return response }
        response.failure = "curl: (\(code.rawValue)) \(String(cString: csn_curl_easy_strerror(code)))"
        response.isCertificateRefused = code == CURLE_PEER_FAILED_VERIFICATION
        return response
    }

    private final class Received {
        /// More of the content is not read.
        private static let limitBytes = 64 << 10

        let isCancelled: () -> Bool
        var response = Response()
        var content: [UInt8] = []
        var isFull = false

        init(_ isCancelled: @escaping () -> Bool) { self.isCancelled = isCancelled }

        func take(headLine: UnsafeRawBufferPointer) {
            let line = String(decoding: headLine, as: UTF8.self).trimming("\r\n")
            if line.hasPrefix("HTTP/") {
                response.fields = []
            } else if let colon = line.firstIndex(of: ":") {
                let value = line[line.index(after: colon)...].trimming(" \t")
                response.fields.append((line[..<colon].lowercased(), value))
            }
        }

        func take(content piece: UnsafeRawBufferPointer) -> Bool {
            content += piece.prefix(Self.limitBytes - content.count)
            isFull = content.count == Self.limitBytes
            return !isFull
        }
    }
}
