// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl
import CountersignCryptography
import Synchronization

/// The reports of libcurl about one running request. Used on one thread, except for the cancellation. Subclasses
/// receive the response.
class CurlReceiver {
    let tls: ServerTLS
    let cancellation: Cancellation

    /// One line of a response's head.
    enum HeadLine {
        case status(Int)
        /// The name is in lower case.
        case field(name: String, value: String)
        case end
    }

    init(tls: ServerTLS, cancellation: Cancellation) {
        self.tls = tls
        self.cancellation = cancellation
    }

    /// The request is sent by another way: the response so far does not count.
    func begins() {}

    func received(_ line: HeadLine) {}

    /// Receives a piece of the body. Returns false to stop the transfer.
    func received(body bytes: UnsafeRawBufferPointer) -> Bool { true }

    private func received(headLine bytes: UnsafeRawBufferPointer) {
        var line = String(decoding: bytes, as: UTF8.self)[...]
        while let last = line.unicodeScalars.last, last == "\r" || last == "\n" { line.unicodeScalars.removeLast() }
        if line.hasPrefix("HTTP/") {
            received(.status(line.split(separator: " ", maxSplits: 2).dropFirst().first.flatMap { Int($0) } ?? 0))
        } else if line.isEmpty {
            received(.end)
        } else if let colon = line.firstIndex(of: ":") {
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            received(.field(name: line[..<colon].lowercased(), value: String(value)))
        }
    }

    // MARK: libcurl

    private static let isSetUp = Mutex(false)

    /// A new handle of libcurl, which is initialised once per process. After a failure, the next call tries again.
    static func makeHandle() throws(EnrollmentError) -> UnsafeMutableRawPointer {
        let isReady = isSetUp.withLock { isSetUp in
            if !isSetUp { isSetUp = csn_curl_global_init_wiping() == CURLE_OK }
            return isSetUp
        }
        guard isReady, let handle = csn_curl_easy_init() else {
            throw EnrollmentError(.unavailable, MissingLibrary.curl.detail, hint: MissingLibrary.curl.hint)
        }
        return handle
    }

    static func check(_ code: CURLcode) throws(EnrollmentError) {
        guard code == CURLE_OK else {
            throw EnrollmentError(.unavailable, "libcurl: \(String(cString: csn_curl_easy_strerror(code)))")
        }
    }

    /// For the callbacks. Not retained.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    private static func at(_ context: UnsafeMutableRawPointer) -> CurlReceiver {
        Unmanaged<CurlReceiver>.fromOpaque(context).takeUnretainedValue()
    }

    /// Makes the handle report to this object, which must live as long as the request.
    func listen(on handle: UnsafeMutableRawPointer) throws(EnrollmentError) {
        try Self.check(
            csn_curl_set_header(
                handle,
                { bytes, size, count, context in
                    guard let bytes, let context else { return 0 }
                    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
                    CurlReceiver.at(context).received(headLine: line)
                    return size * count
                }, context))
        try Self.check(
            csn_curl_set_write(
                handle,
                { bytes, size, count, context in
                    guard let bytes, let context else { return 0 }
                    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
                    return CurlReceiver.at(context).received(body: piece) ? size * count : 0
                }, context))
        try Self.check(
            csn_curl_set_progress(
                handle,
                { context, _, _, _, _ in context.map { CurlReceiver.at($0).cancellation.isCancelled } == true ? 1 : 0 },
                context))
        try Self.check(
            csn_curl_set_tls_context(
                handle,
                { _, tls, context in
                    guard let tls, let context else { return CURLE_SSL_CONNECT_ERROR }
                    let isInstalled = CurlReceiver.at(context).tls.install(on: OpaquePointer(tls))
                    return isInstalled ? CURLE_OK : CURLE_SSL_CONNECT_ERROR
                }, context))
    }
}
