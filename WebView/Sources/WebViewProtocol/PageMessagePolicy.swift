// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The pages that may post messages, and the permitted types.
package struct PageMessageRules: Codable, Equatable, Sendable {
    /// `https://host[:port]`, each an allowed origin.
    package var origins: [String]
    /// Types of callbacks that the caller can answer. Every type if absent.
    package var types: [String]?

    package init(origins: [String], types: [String]? = nil) {
        self.origins = origins
        self.types = types
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.members(CodingKeys.self)
        origins = try members.decode([String].self, forKey: .origins)
        types = try members.decodeIfPresent([String].self, forKey: .types)
    }

    enum CodingKeys: String, CodingKey, CaseIterable {
        case origins, types
    }
}

/// Decides about each message of a page: a JSON text `{"callbacks": [{"type": "…", …}], …}`.
package struct PageMessagePolicy: Equatable, Sendable {
    package enum Decision: Equatable, Sendable {
        /// Hand it to the caller.
        case deliver(origin: String, body: String)
        /// Answer the page with this JSON text.
        case answer(String)
    }

    package let origins: [Origin]
    package let types: Set<String>?

    init(_ rules: PageMessageRules, allowedOrigins: [Origin]) throws(ProtocolError) {
        var origins: [Origin] = []
        for text in rules.origins {
            guard let origin = Origin(text), allowedOrigins.contains(origin) else {
                throw ProtocolError("'pageMessages.origins' has a member that is not an allowed origin")
            }
            origins.append(origin)
        }
        self.origins = origins
        types = rules.types.map(Set.init)
    }

    /// - Parameter envelope: The message of the bridge: a JSON text `{"origin": "…", "body": "…"}`, in which the page
    ///   controls `body` only.
    package func decide(_ envelope: String, waiting: Int) -> Decision {
        guard let envelope = try? JSONDecoder().decode(Envelope.self, from: Data(envelope.utf8)),
            let origin = Origin(envelope.origin), origins.contains(origin)
        else { return .answer(Self.error("origin", "this page may not post messages")) }
        guard envelope.body.utf8.count <= Limits.pageMessageBytes else {
            return .answer(Self.error("tooLarge", "the message is longer than \(Limits.pageMessageBytes) bytes"))
        }
        guard waiting < Limits.waitingPageMessages else {
            return .answer(Self.error("tooMany", "too many messages wait for their answers"))
        }
        guard let message = try? JSONDecoder().decode(Message.self, from: Data(envelope.body.utf8)) else {
            return .answer(Self.error("malformed", "the message is not a JSON object with callbacks"))
        }
        if let types, !message.callbacks.allSatisfy({ types.contains($0.type) }) {
            return .answer(Self.error("unsupportedType", "the message has a callback of an unsupported type"))
        }
        return .deliver(origin: origin.description, body: envelope.body)
    }

    /// - Throws: `ProtocolError` if `answer` is not JSON, or too long.
    package static func checkAnswer(_ answer: String) throws(ProtocolError) {
        guard answer.utf8.count <= Limits.pageMessageBytes else {
            throw ProtocolError("'answer' is longer than \(Limits.pageMessageBytes) bytes")
        }
        do {
            _ = try JSONDecoder().decode(AnyValue.self, from: Data(answer.utf8))
        } catch {
            throw ProtocolError("'answer' is not JSON text")
        }
    }

    private static func error(_ code: String, _ message: String) -> String {
        #"{"error":"\#(code)","message":"\#(message)"}"#
    }

    private struct Envelope: Decodable {
        let origin: String
        let body: String
    }

    private struct Message: Decodable {
        struct Callback: Decodable {
            let type: String
        }
        let callbacks: [Callback]
    }

    /// Any JSON value. Only its syntax matters.
    private struct AnyValue: Decodable {
        init(from decoder: any Decoder) throws {}
    }
}
