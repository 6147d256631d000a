// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A line on the web view's standard output: a JSON object whose member `type` names the event.
package enum Event: Equatable, Sendable {
    /// Commands are read. `protocolVersion` is `Event.protocolVersion`.
    case ready(protocolVersion: Int, webKit: String)
    case loadStarted(url: String)
    case loadFinished(url: String)
    /// `message` is WebKit's text, in the person's language, or a sentence of the proxy. The page that was shown before
    /// stays.
    case loadFailed(url: String, code: LoadFailure, message: String)
    /// The redirect URI was met, with its query and fragment. The load was cancelled and the window stays.
    case redirect(url: String)
    case navigationRefused(url: String, why: Refusal)
    /// The selected cookies after a load that changed them, and at the end.
    case cookies([Cookie])
    /// The cookies that the window's origins get, because the caller has asked for them or will share them with another
    /// window. `omitted` is how many there are besides.
    case session([Cookie], omitted: Int)
    /// `body` is JSON text, at most 16 KiB. Must be answered by `answerMessage` with this id.
    case pageMessage(id: Int, origin: String, body: String)
    /// The page that posted the messages before is gone. Their answers are ignored.
    case pageMessagesGone
    /// A URL with a scheme of device enrolment, complete. The load was cancelled.
    case specialURL(url: String)
    /// A page asks for this device's certificate; the URL is complete. The load was cancelled.
    case deviceChallenge(url: String)
    /// A configuration profile that the page has delivered. `content` is in Base64.
    case profile(url: String, content: String)
    case snapshot(file: String)
    /// The last event of a run that ended as intended. Exit status 0.
    case closed(ClosedReason)
    /// The last event of a run that could not go on. Exit status 1.
    case failed(code: FailureCode, sentence: String, remedy: String)

    package static let protocolVersion = 1

    package init(line: some Collection<UInt8>) throws {
        self = try JSONDecoder().decode(Event.self, from: Data(line))
    }

    /// One line, without its end.
    package var line: [UInt8] {
        get throws { try JSONEncoder.line(self) }
    }
}

package enum LoadFailure: String, Codable, Sendable {
    /// The server's certificate does not verify.
    case certificate
    /// Names, connections, TLS.
    case network
    /// The proxy answers in place of the server: it cannot reach it, or does not trust it.
    case proxy
    /// Stopped by the page or the person.
    case stopped
    case other
}

package enum ClosedReason: String, Codable, Sendable {
    /// By the command `close`.
    case close
    /// By the command `cancel`.
    case cancel
    /// The person closed the window.
    case window
    /// The page called `window.close()`.
    case page
    case timeLimit
    /// Standard input ended.
    case inputEnded
}

package enum FailureCode: String, Codable, Sendable {
    case noDisplay, noBubblewrap, noUserNamespaces, noTrustStore, noCABundle
    /// A command breaks the protocol.
    case protocolError
    /// The data folder cannot be used.
    case dataFolder
    case cookies
    /// WebKit's process for the page ended.
    case webProcess
}

extension Event: Codable {
    private enum Kind: String, Codable {
        case ready, loadStarted, loadFinished, loadFailed, redirect, navigationRefused, cookies, session, pageMessage
        case pageMessagesGone, specialURL, deviceChallenge, profile, snapshot, closed, failed
    }

    private enum Key: String, CodingKey {
        case type, protocolVersion, webKit, url, code, message, why, cookies, id, origin, body, file, reason, content
        case sentence, remedy, omitted
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Key.self)
        func text(_ key: Key) throws -> String { try members.decode(String.self, forKey: key) }
        switch try members.decode(Kind.self, forKey: .type) {
        case .ready:
            self = .ready(
                protocolVersion: try members.decode(Int.self, forKey: .protocolVersion), webKit: try text(.webKit))
        case .loadStarted: self = .loadStarted(url: try text(.url))
        case .loadFinished: self = .loadFinished(url: try text(.url))
        case .loadFailed:
            self = .loadFailed(
                url: try text(.url), code: try members.decode(LoadFailure.self, forKey: .code),
                message: try text(.message))
        case .redirect: self = .redirect(url: try text(.url))
        case .navigationRefused:
            self = .navigationRefused(url: try text(.url), why: try members.decode(Refusal.self, forKey: .why))
        case .cookies: self = .cookies(try members.decode([Cookie].self, forKey: .cookies))
        case .session:
            self = .session(
                try members.decode([Cookie].self, forKey: .cookies),
                omitted: try members.decode(Int.self, forKey: .omitted))
        case .pageMessage:
            self = .pageMessage(
                id: try members.decode(Int.self, forKey: .id), origin: try text(.origin), body: try text(.body))
        case .pageMessagesGone: self = .pageMessagesGone
        case .specialURL: self = .specialURL(url: try text(.url))
        case .deviceChallenge: self = .deviceChallenge(url: try text(.url))
        case .profile: self = .profile(url: try text(.url), content: try text(.content))
        case .snapshot: self = .snapshot(file: try text(.file))
        case .closed: self = .closed(try members.decode(ClosedReason.self, forKey: .reason))
        case .failed:
            self = .failed(
                code: try members.decode(FailureCode.self, forKey: .code), sentence: try text(.sentence),
                remedy: try text(.remedy))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: Key.self)
        func put(_ kind: Kind, _ texts: [Key: String] = [:]) throws {
            try members.encode(kind, forKey: .type)
            for (key, text) in texts { try members.encode(text, forKey: key) }
        }
        switch self {
        case .ready(let version, let webKit):
            try put(.ready, [.webKit: webKit])
            try members.encode(version, forKey: .protocolVersion)
        case .loadStarted(let url): try put(.loadStarted, [.url: url])
        case .loadFinished(let url): try put(.loadFinished, [.url: url])
        case .loadFailed(let url, let code, let message):
            try put(.loadFailed, [.url: url, .code: code.rawValue, .message: message])
        case .redirect(let url): try put(.redirect, [.url: url])
        case .navigationRefused(let url, let why): try put(.navigationRefused, [.url: url, .why: why.rawValue])
        case .cookies(let cookies):
            try put(.cookies)
            try members.encode(cookies, forKey: .cookies)
        case .session(let cookies, let omitted):
            try put(.session)
            try members.encode(cookies, forKey: .cookies)
            try members.encode(omitted, forKey: .omitted)
        case .pageMessage(let id, let origin, let body):
            try put(.pageMessage, [.origin: origin, .body: body])
            try members.encode(id, forKey: .id)
        case .pageMessagesGone: try put(.pageMessagesGone)
        case .specialURL(let url): try put(.specialURL, [.url: url])
        case .deviceChallenge(let url): try put(.deviceChallenge, [.url: url])
        case .profile(let url, let content): try put(.profile, [.url: url, .content: content])
        case .snapshot(let file): try put(.snapshot, [.file: file])
        case .closed(let reason): try put(.closed, [.reason: reason.rawValue])
        case .failed(let code, let sentence, let remedy):
            try put(.failed, [.code: code.rawValue, .sentence: sentence, .remedy: remedy])
        }
    }
}
