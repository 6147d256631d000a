// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// The meaning of a request to the redirect listener.
enum RedirectRequest: Equatable {
    /// An authorization response: the encoded parameters of a query or of a form.
    case response(String)
    /// The page that a browser is sent to after an authorization response.
    case page(RedirectPage)
    /// To be refused with this status.
    case refused(Int)
}

/// Collects the request of one connection. Closed after one request.
struct RedirectInput {
    let address: RedirectAddress
    /// The port that the listener has.
    let port: UInt16
    private var bytes: [UInt8] = []
    private var head: RequestHead?

    /// The largest form (OAuth 2.0 Form Post Response Mode), in bytes.
    static let formBytes = 64 << 10
    private static let limits = HeadLimits(requestLineBytes: 16 << 10, headBytes: 32 << 10, fieldCount: 64)

    init(_ address: RedirectAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// Adds the bytes received. Returns nil while the request is incomplete.
    mutating func received(_ more: some Collection<UInt8>) -> RedirectRequest? {
        bytes += more
        if let head { return form(of: head) }
        do throws(HTTP1Error) {
            guard let parsed = try RequestHead.parse(bytes.span.bytes, limits: Self.limits) else { return nil }
            bytes.removeFirst(parsed.consumedBytes)
            return request(parsed.head)
        } catch {
            return .refused(error.statusHint)
        }
    }

    /// `Host` must be the redirect URI's, so that no other name that resolves to this machine reaches the listener.
    /// Browsers leave out the scheme's own port.
    private func isOwn(_ host: String?) -> Bool {
        guard let host = host?.lowercased() else { return false }
        return host == "\(address.host.rawValue):\(port)" || port == 80 && host == address.host.rawValue
    }

    private mutating func request(_ head: RequestHead) -> RedirectRequest? {
        guard isOwn(head.host) else { return .refused(421) }
        let target = head.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        if let page = RedirectPage.allCases.first(where: { target == [Substring($0.path)] }), head.method == .get {
            return .page(page)
        }
        guard target[0] == address.path else { return .refused(404) }
        switch head.method {
        case .get where target.count == 2 && !target[1].isEmpty && !head.hasBody: return .response(String(target[1]))
        case .get: return .refused(404)
        case .post: return form(of: head)
        default: return .refused(405)
        }
    }

    private mutating func form(of head: RequestHead) -> RedirectRequest? {
        guard case .length(let length) = head.framing else { return .refused(411) }
        guard length <= Self.formBytes else { return .refused(413) }
        guard !head.expectsContinue else { return .refused(417) }
        let type = head.fields.values(named: "content-type").first?.lowercased().prefix { $0 != ";" && $0 != " " }
        guard type == "application/x-www-form-urlencoded" else { return .refused(400) }
        guard bytes.count >= length else {
            self.head = head
            return nil
        }
        guard let text = String(validating: bytes.prefix(Int(length)), as: UTF8.self), !text.isEmpty else {
            return .refused(400)
        }
        return .response(text)
    }
}
