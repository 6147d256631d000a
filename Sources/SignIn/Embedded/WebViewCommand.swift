// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignJSON

/// A line for the standard input of `countersign-webview`. `Documentation/EmbeddedAgent.md` describes the protocol;
/// `Tests/Fixtures/webview` has a line of each kind, which the tests of both packages read.
enum WebViewCommand: Equatable, Sendable {
    case open(WebViewOpening)
    /// `answer` is JSON text.
    case answerMessage(id: Int64, answer: String)
    /// Loads another page. The fields go with the first request, to its origin only.
    case load(url: String, headers: [AdditionalHeader])
    /// Asks for the session's cookies, which arrive as `session`.
    case reportSession
    /// Stores cookies. An expired one removes the stored one.
    case addCookies([WebViewCookie])
    /// Shows a sentence above the page until another page loads.
    case showMessage(String)
    /// Ends the sign-in: the cookies are reported once more.
    case close
    /// Ends the sign-in and discards its cookies.
    case cancel

    /// One line with its end.
    var line: Secret { Secret(utf8: json.serialized + "\n") }

    private var json: JSONValue {
        switch self {
        case .open(let opening): Self.object([("type", .string("open"))] + opening.members)
        case .answerMessage(let id, let answer):
            Self.object([("type", .string("answerMessage")), ("id", .integer(id)), ("answer", .string(answer))])
        case .load(let url, let headers):
            Self.object([("type", .string("load")), ("url", .string(url))] + Self.members(headers))
        case .reportSession: Self.object([("type", .string("reportSession"))])
        case .addCookies(let cookies):
            Self.object([("type", .string("addCookies")), ("cookies", Self.array(cookies))])
        case .showMessage(let text): Self.object([("type", .string("showMessage")), ("text", .string(text))])
        case .close: Self.object([("type", .string("close"))])
        case .cancel: Self.object([("type", .string("cancel"))])
        }
    }

    /// None if there are no fields.
    fileprivate static func members(_ headers: [AdditionalHeader]) -> [(String, JSONValue.Content)] {
        guard !headers.isEmpty else { return [] }
        return [("headers", object(headers.map { ($0.name, .secret(Secret(utf8: $0.value))) }).content)]
    }

    fileprivate static func array(_ cookies: [WebViewCookie]) -> JSONValue.Content {
        .array(cookies.map { object($0.members) })
    }

    fileprivate static func object(_ members: [(String, JSONValue.Content)]) -> JSONValue {
        JSONValue(.object(members.map { JSONMember($0.0, JSONValue($0.1)) }))
    }
}

/// The first command: the permissions of the window.
struct WebViewOpening: Equatable, Sendable {
    var url: String
    var redirectURIs: [String]
    /// `https://host[:port]`.
    var allowedOrigins: [String]
    /// From 1 to 86,400.
    var timeLimitSeconds: Int64
    var title: String?
    /// `http://user:password@127.0.0.1:port`.
    var proxy: Secret?
    /// Stored before the first load.
    var cookies: [WebViewCookie] = []
    var captureCookies: WebViewCookieSelection?
    /// The session is reported at the end.
    var reportsSession = false
    var pageMessages: PageMessageRules?
    /// Of the first request.
    var headers: [AdditionalHeader] = []
    /// URLs with a scheme of device management are reported.
    var specialURLs = false
    /// Requests say that this device has a certificate.
    var announcesDevice = false
    /// Configuration profiles are delivered through this folder.
    var profileFolder: String?

    fileprivate var members: [(String, JSONValue.Content)] {
        var members: [(String, JSONValue.Content)] = [
            ("url", .string(url)), ("redirectURIs", Self.strings(redirectURIs)),
            ("allowedOrigins", Self.strings(allowedOrigins)), ("timeLimitSeconds", .integer(timeLimitSeconds)),
        ]
        if let title { members.append(("title", .string(title))) }
        if let proxy { members.append(("proxy", .secret(proxy))) }
        if !cookies.isEmpty {
            members.append(("cookies", WebViewCommand.array(cookies)))
        }
        if let captureCookies {
            let selection = WebViewCommand.object([
                ("host", .string(captureCookies.host)), ("names", Self.strings(captureCookies.names)),
            ])
            members.append(("captureCookies", selection.content))
        }
        if reportsSession { members.append(("reportsSession", .bool(true))) }
        if let pageMessages {
            let rules = WebViewCommand.object([
                ("origins", Self.strings(pageMessages.origins)), ("types", Self.strings(pageMessages.types)),
            ])
            members.append(("pageMessages", rules.content))
        }
        members += WebViewCommand.members(headers)
        if specialURLs { members.append(("specialURLs", .bool(true))) }
        if announcesDevice { members.append(("announcesDevice", .bool(true))) }
        if let profileFolder { members.append(("profileFolder", .string(profileFolder))) }
        return members
    }

    private static func strings(_ texts: [String]) -> JSONValue.Content {
        .array(texts.map { JSONValue(.string($0)) })
    }
}

/// The cookies to report: those with these names that the host gets.
struct WebViewCookieSelection: Equatable, Sendable {
    var host: String
    var names: [String]
}

extension WebViewCookie {
    fileprivate var members: [(String, JSONValue.Content)] {
        var members: [(String, JSONValue.Content)] = [
            ("name", .string(name)), ("value", .secret(value)), ("domain", .string(domain)), ("path", .string(path)),
            ("secure", .bool(isSecure)), ("httpOnly", .bool(isHTTPOnly)), ("sameSite", .string(sameSite.rawValue)),
        ]
        if let expires { members.append(("expires", .integer(expires))) }
        return members
    }
}
