// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A line from the standard output of `countersign-webview`. See ``WebViewCommand``.
enum WebViewEvent: Equatable, Sendable {
    case ready(protocolVersion: Int64)
    case loadStarted(url: String)
    case loadFinished(url: String)
    case loadFailed(url: String, code: LoadFailure, message: String)
    /// A redirect URI, with its query and fragment.
    case redirect(url: String)
    case navigationRefused(url: String, why: Refusal)
    /// The selected cookies, after a load that changed them and at the end.
    case cookies([WebViewCookie])
    /// The cookies of the window's session, and the number of omitted ones.
    case session([WebViewCookie], omitted: Int64)
    /// `body` is JSON text.
    case pageMessage(id: Int64, origin: String, body: String)
    /// The page that posted the messages before is gone. Their answers would be ignored.
    case pageMessagesGone
    case specialURL(url: String)
    /// A page asks for this device's certificate.
    case deviceChallenge(url: String)
    /// A configuration profile, in Base64.
    case profile(url: String, content: Secret)
    case closed(ClosedReason)
    case failed(code: FailureCode, sentence: String, remedy: String)

    enum LoadFailure: String, CaseIterable, Sendable {
        case certificate, network, proxy, stopped, other
    }

    enum Refusal: String, CaseIterable, Sendable {
        case origin, insecure, scheme, specialURL, newWindow, userName, download, malformed
    }

    enum ClosedReason: String, CaseIterable, Sendable {
        case close, cancel, window, page, timeLimit, inputEnded
    }

    enum FailureCode: String, CaseIterable, Sendable {
        case noDisplay, noBubblewrap, noUserNamespaces, noTrustStore, noCABundle, protocolError, dataFolder, cookies
        case webProcess
    }

    static let protocolVersion: Int64 = 1

    /// The longest line, in bytes: room for 64 cookies of 4 KiB, escaped.
    static let lineBytes = 2 << 20

    /// Parses a line without its end. Throws for everything that the protocol does not have. The error has no value of
    /// the line.
    init(_ line: [UInt8]) throws(JSONError) {
        let limits = JSONLimits(bytes: Self.lineBytes, depth: 8)
        let value = try JSONParser.parse(line, limits: limits, secrets: ["value", "content"])
        var reader = try JSONReader(value, "the event", .strict)
        self = try Self.event(&reader)
        try reader.finish()
    }

    private static func cookies(_ reader: inout JSONReader) throws(JSONError) -> [WebViewCookie] {
        var cookies: [WebViewCookie] = []
        for value in try reader.array("cookies") { cookies.append(try WebViewCookie(value)) }
        return cookies
    }

    private static func event(_ reader: inout JSONReader) throws(JSONError) -> WebViewEvent {
        switch try reader.string("type") {
        case "ready":
            _ = try reader.string("webKit")
            return .ready(protocolVersion: try reader.integer("protocolVersion"))
        case "loadStarted": return .loadStarted(url: try reader.string("url"))
        case "loadFinished": return .loadFinished(url: try reader.string("url"))
        case "loadFailed":
            return .loadFailed(
                url: try reader.string("url"), code: try reader.word("code"), message: try reader.string("message"))
        case "redirect": return .redirect(url: try reader.string("url"))
        case "navigationRefused":
            return .navigationRefused(url: try reader.string("url"), why: try reader.word("why"))
        case "cookies":
            return .cookies(try cookies(&reader))
        case "session":
            return .session(try cookies(&reader), omitted: try reader.integer("omitted"))
        case "pageMessage":
            return .pageMessage(
                id: try reader.integer("id"), origin: try reader.string("origin"), body: try reader.string("body"))
        case "pageMessagesGone": return .pageMessagesGone
        case "specialURL": return .specialURL(url: try reader.string("url"))
        case "deviceChallenge": return .deviceChallenge(url: try reader.string("url"))
        case "profile":
            return .profile(url: try reader.string("url"), content: try reader.secret("content"))
        case "closed": return .closed(try reader.word("reason"))
        case "failed":
            return .failed(
                code: try reader.word("code"), sentence: try reader.string("sentence"),
                remedy: try reader.string("remedy"))
        default: throw reader.invalid("type", "is not an event that this version knows")
        }
    }
}

/// A cookie as the web view reports it.
struct WebViewCookie: Equatable, Sendable {
    enum SameSite: String, CaseIterable, Sendable {
        case none, lax, strict
    }

    let name: String
    let value: Secret
    /// A host, or with a leading dot a domain and the hosts below it.
    let domain: String
    let path: String
    /// Seconds since 1970; nil for a cookie of the session.
    let expires: Int64?
    let isSecure: Bool
    let isHTTPOnly: Bool
    let sameSite: SameSite
}

extension WebViewCookie {
    fileprivate init(_ value: JSONValue) throws(JSONError) {
        var reader = try JSONReader(value, "a cookie", .strict)
        name = try reader.string("name")
        self.value = try reader.secret("value")
        domain = try reader.string("domain")
        path = try reader.string("path")
        expires = try reader.integerIfPresent("expires")
        isSecure = try reader.bool("secure")
        isHTTPOnly = try reader.bool("httpOnly")
        sameSite = try reader.word("sameSite")
        try reader.finish()
    }
}

extension JSONReader {
    fileprivate mutating func word<Word: RawRepresentable<String>>(_ name: String) throws(JSONError) -> Word {
        guard let word = Word(rawValue: try string(name)) else { throw invalid(name, "has an unknown value") }
        return word
    }

    fileprivate mutating func bool(_ name: String) throws(JSONError) -> Bool {
        guard let bool = try boolIfPresent(name) else { throw invalid(name, "is missing") }
        return bool
    }
}
