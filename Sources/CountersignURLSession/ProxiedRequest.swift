// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
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
    /// Excludes Host and Content-Length, which ``bytes()`` adds.
    let fields: [(name: String, value: String)]
    let body: Data?
    /// The longest time without data from the proxy.
    let patience: TimeAmount

    private init(
        url: URL, method: String, fields: [(name: String, value: String)], body: Data?, patience: TimeAmount
    ) {
        self.url = url
        self.method = method
        self.fields = fields
        self.body = body
        self.patience = patience
    }

    /// `ownBody` replaces the request's body. Throws `URLError.badURL` if the request is invalid.
    init(_ request: URLRequest, with settings: SessionSettings, ownBody: Data? = nil) throws {
        guard let url = request.url, url.host?.isEmpty == false, url.user == nil else { throw URLError(.badURL) }
        let body = if let ownBody { ownBody } else { try Self.body(of: request) }
        var fields = (request.allHTTPHeaderFields ?? [:]).map { (name: $0.key, value: $0.value) }
        let names = Set(fields.map { $0.name.lowercased() })
        fields += settings.additionalFields.filter { !names.contains($0.key.lowercased()) }.map {
            (name: $0.key, value: $0.value)
        }
        if request.httpShouldHandleCookies, let cookies = settings.cookies {
            fields += Self.cookieFields(for: url, from: cookies, besides: fields)
        }
        try self.init(
            url: url, method: Self.token(request.httpMethod ?? "GET"), fields: Self.checked(fields), body: body,
            patience: .seconds(upTo: Self.timeout(of: request) ?? settings.requestSeconds))
    }

    /// Nil for the default of 60 seconds: Foundation does not reveal whether it was set explicitly.
    private static func timeout(of request: URLRequest) -> TimeInterval? {
        request.timeoutInterval == 60 ? nil : request.timeoutInterval
    }

    private static func body(of request: URLRequest) throws -> Data? {
        guard let stream = request.httpBodyStream, request.httpBody == nil else { return request.httpBody }
        stream.open()
        defer { stream.close() }
        var body = Data()
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = stream.read(&piece, maxLength: piece.count)
            guard count >= 0 else { throw URLError(.requestBodyStreamExhausted) }
            if count == 0 { return body }
            body.append(contentsOf: piece[..<count])
        }
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

    /// The serialised request.
    func bytes() throws -> [UInt8] {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { throw URLError(.badURL) }
        parts.fragment = nil
        guard let target = parts.string, target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            let host = parts.percentEncodedHost
        else { throw URLError(.badURL) }
        let bracketed = HostText.bracketed(host)
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(bracketed)\(parts.port.map { ":\($0)" } ?? "")\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        if let body { head += "Content-Length: \(body.count)\r\n" }
        return Array((head + "\r\n").utf8) + (body ?? Data())
    }

    // MARK: Redirects

    /// The request to follow a redirect with, or nil if the response is not one (RFC 9110 §15.4). Drops the program's
    /// own `Authorization` and `Cookie` fields if the redirect leads to another origin.
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
        return ProxiedRequest(
            url: target, method: becomesGet ? "GET" : method, fields: kept, body: becomesGet ? nil : body,
            patience: patience)
    }
}
