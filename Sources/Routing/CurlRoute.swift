// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignCCurl
package import CountersignCryptography
package import CountersignParents

/// The hops of one request with libcurl. The next one is tried only if no connection to the last one was made, so that
/// a request is never sent twice.
package struct CurlRoute: Sendable {
    package let hops: [NextHop]
    /// Answers the parents; nil if they are not answered.
    package var relay = ControlRoutes.relay

    package static let direct = CurlRoute(hops: [.direct])

    package init(hops: [NextHop]) { self.hops = hops }

    /// Blocks, as ``ControlRoutes``.
    package init(to origin: Origin, path: String) throws(ParentsError) {
        hops = try ControlRoutes.hops(to: origin, path: path)
    }

    /// The longest wait for a connection if there is another hop to try, in milliseconds.
    private static let connectLimit = 8000

    /// Performs the request that `handle` is prepared for. Calls `began` with each hop before it is tried, so that the
    /// caller can discard the response of the previous hop. Throws if no parent could be used, or if one refused to
    /// open a connection to the origin. `limit` is the handle's own, which the hops share.
    package func perform(
        _ handle: UnsafeMutableRawPointer, within limit: Duration? = nil, began: (NextHop) -> Void = { _ in }
    ) throws(ParentsError) -> CURLcode {
        let end = limit.map { ContinuousClock.now + $0 }
        var rest = hops[...]
        var fault: ParentsError?
        while let hop = rest.popFirst() {
            if let end, rest.count < hops.count - 1 {
                let left = (end - .now) / .milliseconds(1)
                guard left >= 1 else { return CURLE_OPERATION_TIMEDOUT }
                let code = csn_curl_set_long(handle, CURLOPT_TIMEOUT_MS, Int(left))
                guard code == CURLE_OK else { return code }
            }
            guard let parent = hop.parent else {
                let code = Self.prepare(handle, .direct, isLast: rest.isEmpty)
                guard code == CURLE_OK else { return code }
                began(hop)
                let outcome = csn_curl_easy_perform(handle)
                guard !rest.isEmpty, Self.isUnconnected(outcome, handle) else { return outcome }
                continue
            }
            let parents = [parent] + rest.compactMap(\.parent)
            if let relay, let door = try relay.door(to: parents) {
                rest = rest.filter { $0 == .direct }
                began(hop)
                switch try Self.perform(handle, through: relay, door, to: parents, mayBeDirect: !rest.isEmpty) {
                case .ended(let outcome): return outcome
                case .unconnected(let error): fault = error
                }
                continue
            }
            guard parent.kind != .https else {
                // libcurl would have the origin's verifier judge the parent's certificate, too.
                fault = ParentsError(
                    .unsupportedKind, "TLS to a parent is not possible here: \(parent)",
                    hint: "add a parent without TLS, or exclude the host with --no-proxy or COUNTERSIGN_NO_PROXY")
                continue
            }
            let code = Self.prepare(handle, .parent(parent), isLast: rest.isEmpty)
            guard code == CURLE_OK else { return code }
            began(hop)
            let outcome = csn_curl_easy_perform(handle)
            if Self.isUnconnected(outcome, handle) {
                ControlRoutes.parentFailed(parent)
                fault = .unconnected(to: parent.description)
                continue
            }
            ControlRoutes.parentAnswered(parent)
            if let refusal = Self.refusal(by: parent, outcome, handle) { throw refusal }
            return outcome
        }
        if let fault { throw fault }
        return CURLE_COULDNT_CONNECT
    }

    private enum RelayOutcome {
        case ended(CURLcode)
        /// Nothing was sent.
        case unconnected(ParentsError)
    }

    /// The relay tries the parents in their order.
    private static func perform(
        _ handle: UnsafeMutableRawPointer, through relay: any ControlRelay, _ door: Secret,
        to parents: [ParentProxy], mayBeDirect: Bool
    ) throws(ParentsError) -> RelayOutcome {
        let head = RelayHead()
        var code = prepare(handle, .relay(door), isLast: true)
        if code == CURLE_OK { code = head.listen(on: handle) }
        guard code == CURLE_OK else { return .ended(code) }
        let outcome = csn_curl_easy_perform(handle)
        withExtendedLifetime(head) {}
        relay.requestEnded()
        code = csn_curl_set_long(handle, CURLOPT_VERBOSE, 0)
        guard code == CURLE_OK, let refusal = head.refusal else { return .ended(outcome) }
        let error = refusal.parentsError(parents)
        // An attacker who can disturb TLS to a parent must not be able to make requests go without it.
        guard mayBeDirect, refusal.isUnconnected, !parents.contains(where: { $0.kind == .https }) else { throw error }
        return .unconnected(error)
    }

    /// Sets a text option to a secret, which libcurl copies.
    package static func setSecret(
        _ handle: UnsafeMutableRawPointer, _ option: CURLoption, _ secret: Secret
    ) -> CURLcode {
        let terminated = Secret(count: secret.count + 1) { room in secret.withBytes { room.copyMemory(from: $0) } }
        return terminated.withBytes {
            csn_curl_set_string(handle, option, $0.assumingMemoryBound(to: CChar.self).baseAddress)
        }
    }

    private enum Way {
        case direct
        case parent(ParentProxy)
        case relay(Secret)
    }

    private static func prepare(_ handle: UnsafeMutableRawPointer, _ way: Way, isLast: Bool) -> CURLcode {
        let code: CURLcode
        // Not even an empty variable is read: CURLOPT_PROXY is set, and CURLOPT_NOPROXY too.
        var excluded = ""
        switch way {
        case .direct:
            code = csn_curl_set_string(handle, CURLOPT_PROXY, "")
            excluded = "*"
        case .parent(let parent): code = csn_curl_set_string(handle, CURLOPT_PROXY, parent.description)
        case .relay(let door): code = setSecret(handle, CURLOPT_PROXY, door)
        }
        guard code == CURLE_OK else { return code }
        let settings = [
            csn_curl_set_string(handle, CURLOPT_NOPROXY, excluded),
            csn_curl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
        ]
        if let failed = settings.first(where: { $0 != CURLE_OK }) { return failed }
        return isLast ? CURLE_OK : csn_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, connectLimit)
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
            return .unanswered(by: parent.description)
        }
        guard code != CURLE_OK, status != 0, !(200...299).contains(status) else { return nil }
        return ParentsError(.refused, "the parent \(parent) refused the connection with status \(status)")
    }
}
