// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A line on the web view's standard input: a JSON object whose member `type` names the command.
package enum Command: Equatable, Sendable {
    /// Opens the window. The first command, once.
    case open(OpenRequest)
    /// Loads another page in the window.
    case load(PageRequest)
    /// Answers a page's message. `answer` is JSON text.
    case answerMessage(id: Int, answer: String)
    /// Reports the session's cookies as `session`.
    case reportSession
    /// Stores cookies in the session. An expired one removes the stored one. Pages that are loaded afterwards have
    /// them.
    case addCookies([Cookie])
    /// Shows a sentence above the page until another page loads.
    case showMessage(String)
    /// Ends the sign-in and discards its session: no cookies are reported.
    case cancel
    /// Ends the sign-in: the cookies are reported once more.
    case close
    /// Writes the content of the window to a PNG file. Only with `--test`.
    case snapshot(file: String)
    /// Presses the button of the notice above the page, as the person does. Only with `--test`.
    case pressButton

    /// - Throws: `ProtocolError`, whose text has no value from the line.
    package init(line: some Collection<UInt8>) throws(ProtocolError) {
        do {
            self = try JSONDecoder().decode(Command.self, from: Data(line))
        } catch let error as ProtocolError {
            throw error
        } catch let error as DecodingError {
            throw ProtocolError(Self.sentence(error))
        } catch {
            throw ProtocolError("a line is not a JSON object")
        }
    }

    /// One line, without its end.
    package var line: [UInt8] {
        get throws { try JSONEncoder.line(self) }
    }

    /// The reason without the debug description, which quotes values.
    private static func sentence(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, _): "the member '\(key.stringValue)' is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            context.codingPath.isEmpty
                ? "a line is not a JSON object" : "the member '\(path(context))' has the wrong type"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty
                ? "a line is not JSON, or has a number out of range"
                : "the member '\(path(context))' has an unknown value"
        @unknown default: "a line is not a command"
        }
    }

    private static func path(_ context: DecodingError.Context) -> String {
        context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}

extension Command: Codable {
    private enum Kind: String, Codable {
        case open, load, answerMessage, reportSession, addCookies, showMessage, cancel, close, snapshot, pressButton
    }

    private enum KindKey: String, CodingKey {
        case type
    }

    private enum PlainKey: String, CodingKey, CaseIterable {
        case type
    }

    private enum AnswerKey: String, CodingKey, CaseIterable {
        case type, id, answer
    }

    private enum CookiesKey: String, CodingKey, CaseIterable {
        case type, cookies
    }

    private enum MessageKey: String, CodingKey, CaseIterable {
        case type, text
    }

    private enum SnapshotKey: String, CodingKey, CaseIterable {
        case type, file
    }

    package init(from decoder: any Decoder) throws {
        switch try decoder.container(keyedBy: KindKey.self).decode(Kind.self, forKey: .type) {
        case .open: self = .open(try OpenRequest(from: decoder))
        case .load: self = .load(try PageRequest(from: decoder))
        case .answerMessage:
            let members = try decoder.members(AnswerKey.self)
            self = .answerMessage(
                id: try members.decode(Int.self, forKey: .id), answer: try members.decode(String.self, forKey: .answer))
        case .reportSession:
            _ = try decoder.members(PlainKey.self)
            self = .reportSession
        case .addCookies:
            self = .addCookies(try decoder.members(CookiesKey.self).decode([Cookie].self, forKey: .cookies))
        case .showMessage:
            self = .showMessage(try decoder.members(MessageKey.self).decode(String.self, forKey: .text))
        case .cancel:
            _ = try decoder.members(PlainKey.self)
            self = .cancel
        case .close:
            _ = try decoder.members(PlainKey.self)
            self = .close
        case .pressButton:
            _ = try decoder.members(PlainKey.self)
            self = .pressButton
        case .snapshot:
            self = .snapshot(file: try decoder.members(SnapshotKey.self).decode(String.self, forKey: .file))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var type = encoder.container(keyedBy: KindKey.self)
        switch self {
        case .open(let request):
            try type.encode(Kind.open, forKey: .type)
            try request.encode(to: encoder)
        case .load(let request):
            try type.encode(Kind.load, forKey: .type)
            try request.encode(to: encoder)
        case .answerMessage(let id, let answer):
            var members = encoder.container(keyedBy: AnswerKey.self)
            try members.encode(Kind.answerMessage, forKey: .type)
            try members.encode(id, forKey: .id)
            try members.encode(answer, forKey: .answer)
        case .reportSession: try type.encode(Kind.reportSession, forKey: .type)
        case .addCookies(let cookies):
            var members = encoder.container(keyedBy: CookiesKey.self)
            try members.encode(Kind.addCookies, forKey: .type)
            try members.encode(cookies, forKey: .cookies)
        case .showMessage(let text):
            var members = encoder.container(keyedBy: MessageKey.self)
            try members.encode(Kind.showMessage, forKey: .type)
            try members.encode(text, forKey: .text)
        case .cancel: try type.encode(Kind.cancel, forKey: .type)
        case .close: try type.encode(Kind.close, forKey: .type)
        case .pressButton: try type.encode(Kind.pressButton, forKey: .type)
        case .snapshot(let file):
            var members = encoder.container(keyedBy: SnapshotKey.self)
            try members.encode(Kind.snapshot, forKey: .type)
            try members.encode(file, forKey: .file)
        }
    }
}

extension JSONEncoder {
    static func line(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }
}
