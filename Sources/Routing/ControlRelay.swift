// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl
package import CountersignCryptography
import CountersignHTTP1
package import CountersignParents

/// A proxy in this process that answers parents as the data path does, which libcurl cannot: from the vault, with
/// protection against lockout, and with TLS to the parent that is verified separately. libcurl uses it as its proxy. It
/// only forwards: no site is answered, and none is intercepted.
package protocol ControlRelay: AnyObject, Sendable {
    /// Where libcurl reaches the relay, `http://USER:PASSWORD@HOST:PORT`; nil if none of `parents` needs it. Blocks.
    func door(to parents: [ParentProxy]) throws(ParentsError) -> Secret?

    /// A request through the relay has ended. Blocks until what was learned about passwords is stored.
    func requestEnded()
}

/// Why the relay has no response of the origin.
struct RelayRefusal {
    let status: Int
    /// An error type of RFC 9209 §2.3.
    let error: String?
    /// One sentence.
    let detail: String?

    /// Whether no parent was reached, so that the request cannot have been sent.
    var isUnconnected: Bool { ["dns_error", "destination_unavailable", "connection_timeout"].contains(error) }

    func parentsError(_ parents: [ParentProxy]) -> ParentsError {
        let names = parents.map(\.description).joined(separator: " or ")
        let detail = detail ?? "the parent \(names) refused the connection with status \(status)"
        if status == 407 {
            return ParentsError(
                .notAuthenticated, detail, hint: "check the parent's line in AllowedSites, and its credential")
        }
        guard isUnconnected else { return ParentsError(.refused, detail) }
        return .unconnected(to: names, detail)
    }
}

/// The head of the last response that libcurl received, which may be the relay's own.
final class RelayHead {
    private var status = 0
    private var isForwarded = false
    private var proxyStatus: String?

    /// Reads the heads of the handle's responses. The object must live as long as the request.
    func listen(on handle: UnsafeMutableRawPointer) -> CURLcode {
        csn_curl_set_debug(
            handle,
            { _, kind, bytes, count, context in
                guard kind == CURLINFO_HEADER_IN, let bytes, let context else { return 0 }
                let text = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
                let head = Unmanaged<RelayHead>.fromOpaque(context).takeUnretainedValue()
                for line in text.split(whereSeparator: \.isNewline) { head.received(line) }
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func received(_ line: Substring) {
        if line.hasPrefix("HTTP/") {
            status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            (isForwarded, proxyStatus) = (false, nil)
            return
        }
        guard let colon = line.firstIndex(of: ":") else { return }
        switch line[..<colon].lowercased() {
        case "via": isForwarded = true
        case "proxy-status": proxyStatus = String(line[line.index(after: colon)...])
        default: break
        }
    }

    /// Nil if the response is the origin's: the relay adds `Via` to everything that it forwards, and what comes through
    /// a tunnel is not its own.
    func refusal(_ handle: UnsafeMutableRawPointer) -> RelayRefusal? {
        var connected = 0
        _ = csn_curl_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &connected)
        guard status >= 400, connected == 0 || connected == status, !isForwarded, let proxyStatus else { return nil }
        return RelayRefusal(
            status: status, error: ProxyStatus.parameter("error", of: proxyStatus),
            detail: ProxyStatus.parameter("details", of: proxyStatus))
    }
}

extension ParentsError {
    /// A parent wants an authentication that it does not get.
    static func unanswered(by parent: String) -> ParentsError {
        ParentsError(
            .notAuthenticated, "the parent \(parent) requires authentication, which this request does not have",
            hint: "list the parent, such as `proxy://HOST:PORT answer=negotiate,ntlm`, and store its credential, or "
                + "exclude the host with --no-proxy or COUNTERSIGN_NO_PROXY")
    }

    static func unconnected(to parent: String, _ detail: String? = nil) -> ParentsError {
        ParentsError(
            .refused, "no connection to the parent \(parent)" + (detail.map { ": \($0)" } ?? ""),
            hint: "check --parent or COUNTERSIGN_PARENT; `countersign route URL` shows the route")
    }
}
