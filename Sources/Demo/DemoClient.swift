// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl

/// The demo's client: libcurl, using the proxy as any other program would. Blocks the calling thread.
package struct DemoClient {
    package struct Response {
        package var status = 0
        package var body = ""
        /// libcurl's error message if there was no response.
        package var failure: String?
    }

    /// `http://host:port`.
    let proxy: String
    /// A PEM file of trust anchors.
    let trustPath: String

    package init(proxy: String, trustPath: String) {
        self.proxy = proxy
        self.trustPath = trustPath
    }

    package func get(_ url: String) -> Response {
        var response = Response()
        guard let handle = csn_curl_easy_init() else {
            response.failure = "libcurl cannot be loaded or initialised"
            return response
        }
        defer { csn_curl_easy_cleanup(handle) }
        let body = Collected()
        csn_curl_set_string(handle, CURLOPT_URL, url)
        csn_curl_set_string(handle, CURLOPT_PROXY, proxy)
        csn_curl_set_string(handle, CURLOPT_NOPROXY, "")
        csn_curl_set_string(handle, CURLOPT_CAINFO, trustPath)
        csn_curl_set_string(handle, CURLOPT_USERAGENT, "countersign-demo")
        csn_curl_set_long(handle, CURLOPT_TIMEOUT, 20)
        csn_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        csn_curl_set_write(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let received = UnsafeRawBufferPointer(start: bytes, count: size * count)
                Unmanaged<Collected>.fromOpaque(context).takeUnretainedValue().bytes += received
                return size * count
            }, Unmanaged.passUnretained(body).toOpaque())
        let code = csn_curl_easy_perform(handle)
        guard code == CURLE_OK else {
            response.failure = "curl: (\(code.rawValue)) \(String(cString: csn_curl_easy_strerror(code)))"
            return response
        }
        var status = 0
        csn_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
        response.status = status
        response.body = String(decoding: body.bytes, as: UTF8.self)
        return response
    }

    private final class Collected {
        var bytes: [UInt8] = []
    }
}
