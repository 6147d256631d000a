// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Foundation
import NIOCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A request to the proxy, in absolute-form even for https (RFC 9112 §3.2.2).
struct ProxiedRequest: Sendable {
    /// Absolute, http or https.
    let url: URL
    let method: String
    /// Excludes Host and the fields that frame the content, which ``head()`` adds.
    let fields: [(name: String, value: String)]
    let content: RequestContent
    /// The longest time without data from the proxy.
    let patience: TimeAmount

    private init(
        url: URL, method: String, fields: [(name: String, value: String)], content: RequestContent,
        patience: TimeAmount
    ) {
        self.url = url
        self.method = method
        self.fields = fields
        self.content = content
        self.patience = patience
    }

    /// `content` replaces the request's body. Throws `URLError.badURL` if the request is invalid, and
    /// `URLError.unsupportedURL` if its scheme is neither http nor https.
    init(_ request: URLRequest, with settings: SessionSettings, content: RequestContent? = nil) throws {
        guard let url = request.url, url.host?.isEmpty == false, url.user == nil else { throw URLError(.badURL) }
        guard ["http", "https"].contains(url.scheme?.lowercased()) else { throw URLError(.unsupportedURL) }
        let content = if let content { content } else { try Self.content(of: request) }
        var fields = (request.allHTTPHeaderFields ?? [:]).map { (name: $0.key, value: $0.value) }
        let names = Set(fields.map { $0.name.lowercased() })
        fields += settings.additionalFields.filter { !names.contains($0.key.lowercased()) }.map {
            (name: $0.key, value: $0.value)
        }
        if request.httpShouldHandleCookies, let cookies = settings.cookies {
            fields += Self.cookieFields(for: url, from: cookies, besides: fields)
        }
        try self.init(
            url: url, method: Self.token(request.httpMethod ?? "GET"), fields: Self.checked(fields), content: content,
            patience: .seconds(upTo: Self.timeout(of: request) ?? settings.requestSeconds))
    }

    /// Nil for the default of 60 seconds: Foundation does not reveal whether it was set explicitly.
    private static func timeout(of request: URLRequest) -> TimeInterval? {
        request.timeoutInterval == 60 ? nil : request.timeoutInterval
    }

    /// A stream that ends within this many bytes is sent with its length.
    private static let knownLengthBytes = 1 << 20

    private static func content(of request: URLRequest) throws -> RequestContent {
        guard let stream = request.httpBodyStream, request.httpBody == nil else {
            return request.httpBody.map { .bytes($0) } ?? .none
        }
        return try content(of: stream)
    }

    /// Reads the start of a stream, and leaves the rest for later. Closes the stream at its end.
    static func content(of stream: InputStream) throws -> RequestContent {
        stream.open()
        var start = Data()
        while start.count < knownLengthBytes {
            let part = try stream.part(65_536)
            if part.isEmpty {
                stream.close()
                return .bytes(start)
            }
            start.append(part)
        }
        return .stream(ContentStream(start: start, rest: stream))
    }

    private static func cookieFields(
        for url: URL, from storage: HTTPCookieStorage, besides fields: [(name: String, value: String)]
    ) -> [(name: String, value: String)] {
        guard !fields.contains(where: { $0.name.lowercased() == "cookie" }),
            let cookies = storage.cookies(for: url), !cookies.isEmpty
        else { return [] }
        return HTTPCookie.requestHeaderFields(with: cookies).map { (name: $0.key, value: $0.value) }
    }

    /// Validates a field name or method (RFC 9110 §5.6.2).
    private static func token(_ text: String) throws -> String {
        let isToken =
            !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (byte > 0x20 && byte < 0x7F) && !"\"(),/:;<=>?@[\\]{}".utf8.contains(byte)
            }
        guard isToken, text != "CONNECT" else { throw URLError(.badURL) }
        return text
    }

    /// Rejects control characters, and drops fields that concern only the connection.
    private static func checked(
        _ fields: [(name: String, value: String)]
    ) throws -> [(name: String, value: String)] {
        try fields.filter { field in
            _ = try token(field.name)
            guard field.value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else {
                throw URLError(.badURL)
            }
            let name = field.name.lowercased()
            return !["host", "content-length", "connection", "transfer-encoding", "proxy-authorization"].contains(name)
        }
    }

    /// The serialised head, and content that is sent together with it.
    func head() throws -> [UInt8] {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { throw URLError(.badURL) }
        parts.fragment = nil
        guard let target = parts.string, target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            let host = parts.percentEncodedHost
        else { throw URLError(.badURL) }
        let bracketed = HostText.bracketed(host)
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(bracketed)\(parts.port.map { ":\($0)" } ?? "")\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        switch content {
        case .none:
            return Array((head + "\r\n").utf8)
        case .data(let data):
            return Array((head + "Content-Length: \(data.count)\r\n\r\n").utf8) + data
        case .stream(let stream):
            let framing = stream.length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
            return Array((head + framing + "\r\n\r\n").utf8)
        }
    }

    // MARK: Redirects

    /// The request to follow a redirect with, or nil if the response is not one (RFC 9110 §15.4). Drops the program's
    /// own `Authorization` and `Cookie` fields if the redirect leads to another origin. Throws
    /// `URLError.requestBodyStreamExhausted` if the content has to be sent again and cannot.
    func redirected(by response: ProxiedResponse, cookies: HTTPCookieStorage?) throws -> ProxiedRequest? {
        guard [301, 302, 303, 307, 308].contains(response.status), let location = response.value(of: "location"),
            let target = URL(string: location, relativeTo: url)?.absoluteURL
        else { return nil }
        guard ["http", "https"].contains(target.scheme?.lowercased()), target.host?.isEmpty == false, target.user == nil
        else { throw URLError(.unsupportedURL) }
        let isSame = target.scheme == url.scheme && target.host == url.host && target.port == url.port
        let becomesGet = response.status == 303 ? method != "HEAD" : response.status < 303 && method == "POST"
        var dropped: Set<String> = cookies == nil ? [] : ["cookie"]
        if !isSame { dropped.formUnion(["authorization", "cookie"]) }
        if becomesGet { dropped.formUnion(["content-type", "content-encoding", "content-language"]) }
        var kept = fields.filter { !dropped.contains($0.name.lowercased()) }
        if let cookies { kept += Self.cookieFields(for: target, from: cookies, besides: kept) }
        guard becomesGet || content.isRepeatable else {
            let reason = "the server redirects an upload from a stream, which cannot be sent again"
            throw URLError(.requestBodyStreamExhausted, userInfo: [NSLocalizedDescriptionKey: reason])
        }
        return ProxiedRequest(
            url: target, method: becomesGet ? "GET" : method, fields: kept, content: becomesGet ? .none : content,
            patience: patience)
    }
}
