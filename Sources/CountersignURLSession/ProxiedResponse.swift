// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A response from the proxy: the origin's, or the proxy's own.
struct ProxiedResponse: Sendable {
    let status: Int
    let fields: [(name: String, value: String)]
    let body: Data

    /// The combined value of a field (RFC 9110 §5.3). `name` must be in lower case.
    func value(of name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The response for Foundation. `hidesChallenges` renames the `WWW-Authenticate` field of a 401, because URLSession
    /// on Linux would wait forever for a credential.
    func foundation(for url: URL, hidesChallenges: Bool) throws -> HTTPURLResponse {
        var joined: [String: String] = [:]
        for field in fields {
            let isChallenge = hidesChallenges && status == 401 && field.name.lowercased() == "www-authenticate"
            let name = isChallenge ? "Countersign-WWW-Authenticate" : field.name
            let known = joined.keys.first { $0.lowercased() == name.lowercased() } ?? name
            joined[known] = joined[known].map { "\($0), \(field.value)" } ?? field.value
        }
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: joined)
        else { throw URLError(.badServerResponse) }
        return response
    }

    // MARK: The proxy's own responses

    /// The error with which URLSession would fail, if this is the proxy's response; nil if it is the origin's.
    ///
    /// The proxy adds `Via` to every response that it forwards (RFC 9110 §7.6.3), so an origin cannot fake a response
    /// of the proxy.
    func failure(at url: URL) -> URLError? {
        guard value(of: "via") == nil, let status = value(of: "proxy-status"),
            let error = ProxyStatus.parameter("error", of: status)
        else { return nil }
        var userInfo: [String: Any] = [NSURLErrorFailingURLErrorKey: url]
        userInfo[NSLocalizedDescriptionKey] = ProxyStatus.parameter("details", of: status)
        return URLError(Self.code(for: error), userInfo: userInfo)
    }

    /// Maps the error types of RFC 9209 §2.3.
    private static func code(for error: String) -> URLError.Code {
        switch error {
        case "dns_error": .cannotFindHost
        case "destination_unavailable": .cannotConnectToHost
        case "connection_timeout", "http_response_timeout": .timedOut
        case "connection_terminated", "http_response_incomplete": .networkConnectionLost
        case "tls_protocol_error", "tls_alert_received": .secureConnectionFailed
        case "tls_certificate_error": .serverCertificateUntrusted
        case "http_protocol_error": .badServerResponse
        default: .resourceUnavailable
        }
    }

    // MARK: Cookies

    func storeCookies(of url: URL, in storage: HTTPCookieStorage) {
        let cookies = fields.filter { $0.name.lowercased() == "set-cookie" }
            .compactMap { Self.cookie($0.value, of: url) }
        storage.setCookies(cookies, for: url, mainDocumentURL: nil)
    }

    /// The cookie in a `Set-Cookie` field. Foundation treats a comma as the start of another cookie, which the field's
    /// grammar does not allow (RFC 6265 §4.1.1), so all commas except those of dates are hidden from it.
    private static func cookie(_ field: String, of url: URL) -> HTTPCookie? {
        var parts = field.split(separator: ";", omittingEmptySubsequences: false)[...]
        guard let pair = parts.popFirst(), let equals = pair.firstIndex(of: "=") else { return nil }
        let name = pair[..<equals].trimmingCharacters(in: .whitespaces)
        let value = pair[pair.index(after: equals)...].trimmingCharacters(in: .whitespaces)
        let attributes = parts.map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.contains(",") || $0.lowercased().hasPrefix("expires=") }
        let visible = (["\(name)=\(value.contains(",") ? "hidden" : value)"] + attributes).joined(separator: "; ")
        let found = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": visible], for: url)
        guard found.count == 1, let cookie = found.first, cookie.name == name else { return nil }
        return value.contains(",") ? Self.cookie(cookie, with: value) : cookie
    }

    /// Foundation does not read all of the properties that it gives.
    private static func cookie(_ cookie: HTTPCookie, with value: String) -> HTTPCookie? {
        var properties = cookie.properties ?? [:]
        properties[.value] = value
        properties[.secure] = cookie.isSecure ? "TRUE" : nil
        properties[HTTPCookiePropertyKey("HttpOnly")] = cookie.isHTTPOnly ? "TRUE" : nil
        properties[.expires] = cookie.expiresDate
        properties[.version] = "\(cookie.version)"
        return HTTPCookie(properties: properties)
    }
}
