// SPDX-License-Identifier: Apache-2.0

package import CountersignCCurl
package import CountersignChallenges
package import CountersignParents

/// The hops of one request with libcurl. The next one is tried only if no connection to the last one was made, so that
/// a request is never sent twice.
package struct CurlRoute: Sendable {
    package let hops: [NextHop]

    package static let direct = CurlRoute(hops: [.direct])

    package init(hops: [NextHop]) { self.hops = hops }

    /// Blocks, as ``ControlRoutes``.
    package init(to origin: Origin, path: String) throws(ParentsError) {
        hops = try ControlRoutes.hops(to: origin, path: path)
    }

    /// The longest wait for a connection if there is another hop to try, in milliseconds.
    private static let connectLimit = 8000

    /// Performs the request that `handle` is prepared for. `began` is told each hop before it is tried. Throws if no
    /// parent could be used, or if one refused to open a connection to the origin.
    package func perform(
        _ handle: UnsafeMutableRawPointer, began: (NextHop) -> Void = { _ in }
    ) throws(ParentsError) -> CURLcode {
        let hops = hops.filter { !Self.demandsTLS($0) }
        guard !hops.isEmpty else {
            let names = self.hops.map(\.description).joined(separator: " and ")
            throw ParentsError(
                .unsupportedKind, "TLS to a parent is not supported for Countersign's own requests: \(names)",
                hint: "add a parent without TLS, or exclude the host with --no-proxy or COUNTERSIGN_NO_PROXY")
        }
        var fault: ParentsError?
        for (index, hop) in hops.enumerated() {
            let code = Self.prepare(handle, hop, isLast: index == hops.count - 1)
            guard code == CURLE_OK else { return code }
            began(hop)
            let outcome = csn_curl_easy_perform(handle)
            guard case .parent(let parent) = hop else {
                guard index < hops.count - 1, Self.isUnconnected(outcome, handle) else { return outcome }
                continue
            }
            if Self.isUnconnected(outcome, handle) {
                ControlRoutes.parentFailed(parent)
                fault = ParentsError(
                    .refused, "no connection to the parent \(parent)",
                    hint: "check --parent or COUNTERSIGN_PARENT; `countersign route URL` shows the route")
                continue
            }
            ControlRoutes.parentAnswered(parent)
            if let refusal = Self.refusal(by: parent, outcome, handle) { throw refusal }
            return outcome
        }
        if let fault { throw fault }
        return CURLE_COULDNT_CONNECT
    }

    /// libcurl would have the origin's verifier judge such a parent's certificate, too.
    private static func demandsTLS(_ hop: NextHop) -> Bool {
        if case .parent(let parent) = hop { parent.kind == .https } else { false }
    }

    private static func prepare(
        _ handle: UnsafeMutableRawPointer, _ hop: NextHop, isLast: Bool
    ) -> CURLcode {
        // Not even an empty variable is read: CURLOPT_PROXY is set, and CURLOPT_NOPROXY too.
        var texts = [(CURLOPT_PROXY, ""), (CURLOPT_NOPROXY, "*")]
        if case .parent(let parent) = hop { texts = [(CURLOPT_PROXY, parent.description), (CURLOPT_NOPROXY, "")] }
        for (option, text) in texts {
            let code = csn_curl_set_string(handle, option, text)
            if code != CURLE_OK { return code }
        }
        let code = csn_curl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        guard code == CURLE_OK, !isLast else { return code }
        return csn_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, connectLimit)
    }

    /// Whether nothing can have been sent to the origin.
    private static func isUnconnected(_ code: CURLcode, _ handle: UnsafeMutableRawPointer) -> Bool {
        switch code {
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST: return true
        case CURLE_OPERATION_TIMEDOUT:
            var connections = 0
            _ = csn_curl_get_long(handle, CURLINFO_NUM_CONNECTS, &connections)
            var microseconds = 0
            _ = csn_curl_get_long(handle, CURLINFO_CONNECT_TIME_T, &microseconds)
            return connections > 0 && microseconds == 0
        default: return false
        }
    }

    private static func refusal(
        by parent: ParentProxy, _ code: CURLcode, _ handle: UnsafeMutableRawPointer
    ) -> ParentsError? {
        if code == CURLE_PROXY {
            return ParentsError(.refused, "the parent \(parent) does not open the connection")
        }
        var status = 0
        var plain = 0
        _ = csn_curl_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &status)
        _ = csn_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &plain)
        if status == 407 || (status == 0 && plain == 407) {
            return ParentsError(
                .notAuthenticated, "the parent \(parent) requires authentication, which this request does not have",
                hint: "name a parent that does not, or exclude the host with --no-proxy or COUNTERSIGN_NO_PROXY")
        }
        guard code != CURLE_OK, status != 0, !(200...299).contains(status) else { return nil }
        return ParentsError(.refused, "the parent \(parent) refused the connection with status \(status)")
    }
}
