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

    /// A request through the relay has ended. Blocks until it is stored which passwords were accepted or rejected.
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
        if status == 407 {
            guard let detail else { return .unanswered(by: names) }
            return ParentsError(
                .notAuthenticated, detail, hint: "check the parent's line in AllowedSites, and its credential")
        }
        let detail = detail ?? "the parent \(names) refused the connection with status \(status)"
        guard isUnconnected else { return ParentsError(.refused, detail) }
        return .unconnected(to: names, detail)
    }
}

/// The head of the last response that libcurl received, which may be the relay's own.
final class RelayHead {
    private var status = 0
    /// The request was sent to the relay, not through a tunnel that it has opened.
    private var isToRelay = false
    private var isForwarded = false
    private var proxyStatus: String?

    /// Reads the heads of the handle's responses. The object must live as long as the request.
    func listen(on handle: UnsafeMutableRawPointer) -> CURLcode {
        csn_curl_set_debug(
            handle,
            { _, kind, bytes, count, context in
                guard let bytes, let context else { return 0 }
                let head = Unmanaged<RelayHead>.fromOpaque(context).takeUnretainedValue()
                let text = UnsafeRawBufferPointer(start: bytes, count: count)
                switch kind {
                case CURLINFO_HEADER_OUT: head.sent(text)
                case CURLINFO_HEADER_IN:
                    for line in String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline) {
                        head.received(line)
                    }
                default: break
                }
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// A request in absolute-form, or CONNECT. The rest of the head may contain secrets.
    func sent(_ head: UnsafeRawBufferPointer) {
        let target = head.drop { $0 != UInt8(ascii: " ") }.dropFirst()
        isToRelay = target.first != UInt8(ascii: "/") && target.first != UInt8(ascii: "*")
        (status, isForwarded, proxyStatus) = (0, false, nil)
    }

    func received(_ line: Substring) {
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

    /// Why the parents do not forward the request; nil if the response is the origin's. The relay adds `Via` to
    /// everything that it forwards. A 407 can only come from a parent.
    var refusal: RelayRefusal? {
        guard isToRelay, status >= 400 else { return nil }
        if status == 407, isForwarded { return RelayRefusal(status: status, error: nil, detail: nil) }
        guard !isForwarded, let proxyStatus else { return nil }
        return RelayRefusal(
            status: status, error: ProxyStatus.parameter("error", of: proxyStatus),
            detail: ProxyStatus.parameter("details", of: proxyStatus))
    }
}

extension ParentsError {
    /// A parent demands authentication that is not available.
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
