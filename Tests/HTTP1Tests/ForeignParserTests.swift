// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import CountersignHTTP1

/// One message as read by either parser.
private struct ReadMessage: Equatable {
    var startLine = ""
    var fields: [String] = []
    var body = ""
    var trailers: [String] = []
}

/// Compares the parser with llhttp, as used by NIO: llhttp must accept every message that the parser accepts, and read
/// it in the same way; of a response that was repaired, the clean form. Two differences are intended: llhttp refuses
/// unknown methods, which RFC 9110 §16.1.1 allows, and targets in unknown forms, which `RequestTarget` handles.
/// Messages that only the parser refuses are not compared.
@Suite struct ForeignParserTests {
    @Test(arguments: 0..<8)
    func llhttpReadsAcceptedRequestsInTheSameWay(part: UInt64) throws {
        var mutation = Mutation(of: Mutation.requests, seed: part)
        var counts = (whole: 0, refusedByBoth: 0)
        for _ in 0..<1_000 {
            let input = mutation.next()
            guard let (ours, consumed) = Self.readRequest(input) else {
                if case .failure = Self.readRequestWithLLHTTP(input) { counts.refusedByBoth += 1 }
                continue
            }
            counts.whole += 1
            switch Self.readRequestWithLLHTTP(Array(input.prefix(consumed))) {
            case .success(let theirs):
                #expect(theirs == ours, "\(text(input).debugDescription)")
            case .failure(.invalidMethod), .failure(.invalidURL):
                break
            case .failure(let error):
                Issue.record("llhttp refuses \(text(input).debugDescription): \(error)")
            }
        }
        // The comparison is meaningful only if both results occur.
        #expect(counts.whole > 100)
        #expect(counts.refusedByBoth > 100)
    }

    @Test(arguments: 0..<8)
    func llhttpReadsAcceptedResponsesInTheSameWay(part: UInt64) throws {
        var mutation = Mutation(of: Mutation.responses, seed: 1_000 + part)
        var counts = (whole: 0, refusedByBoth: 0)
        for _ in 0..<1_000 {
            let input = mutation.next()
            guard let (ours, clean) = Self.readResponse(input) else {
                if case .failure = Self.readResponseWithLLHTTP(input) { counts.refusedByBoth += 1 }
                continue
            }
            counts.whole += 1
            switch Self.readResponseWithLLHTTP(clean) {
            case .success(let theirs):
                #expect(theirs == ours, "\(text(input).debugDescription)")
            case .failure(let error):
                Issue.record("llhttp refuses \(text(input).debugDescription): \(error)")
            }
        }
        #expect(counts.whole > 100)
        #expect(counts.refusedByBoth > 100)
    }

    @Test func everyPrefixOfAValidMessageIsIncompleteAndNotAnError() {
        var mutation = Mutation(of: Mutation.requests, seed: 77)
        for _ in 0..<400 {
            let input = mutation.next()
            guard let (message, consumed) = Self.readRequest(input) else { continue }
            for count in 0..<consumed {
                #expect(Self.readRequest(Array(input.prefix(count))) == nil, "\(message.startLine) after \(count)")
            }
        }
    }

    // MARK: The parser

    private static func readRequest(_ input: [UInt8]) -> (ReadMessage, consumed: Int)? {
        guard let parsed = try? RequestHead.parse(input.span.bytes) else { return nil }
        let head = parsed.head
        var message = ReadMessage(startLine: "\(head.methodText) \(head.target) \(head.version.rawValue)")
        message.fields = fields(head.fields)
        return body(input, from: parsed.consumedBytes, as: head.framing, into: message)
    }

    /// `clean` is the message with its repaired head.
    private static func readResponse(_ input: [UInt8]) -> (ReadMessage, clean: [UInt8])? {
        guard let parsed = try? ResponseHead.parse(input.span.bytes) else { return nil }
        let head = parsed.head
        guard !head.isInformational, let framing = try? head.framing(answering: .get) else { return nil }
        var message = ReadMessage(startLine: "\(head.version.rawValue) \(head.status)")
        message.fields = fields(head.fields)
        return body(input, from: parsed.consumedBytes, as: framing, into: message).map { message, end in
            (message, head.fields.bytes + input[parsed.consumedBytes..<end])
        }
    }

    private static func body(
        _ input: [UInt8], from start: Int, as framing: BodyFraming, into message: ReadMessage
    ) -> (ReadMessage, consumed: Int)? {
        var message = message
        var decoder = BodyDecoder(framing)
        var offset = start
        while true {
            guard let piece = try? decoder.next(input.span.bytes, from: &offset) else { return nil }
            switch piece {
            case .content(let range):
                message.body += text(input[range])
            case .needsMore:
                return decoder.inputEnded() ? (message, offset) : nil
            case .end(let trailers):
                message.trailers = trailers.map(fields) ?? []
                return (message, offset)
            }
        }
    }

    private static func fields(_ fields: FieldLines) -> [String] {
        fields.lines.map { "\(fields.name(of: $0)): \(fields.value(of: $0))" }
    }

    // MARK: llhttp

    private static func readRequestWithLLHTTP(_ input: [UInt8]) -> Result<ReadMessage, HTTPParserError> {
        let channel = EmbeddedChannel(
            handler: ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
        return read(input, on: channel) { (part: HTTPServerRequestPart, message: inout ReadMessage) in
            switch part {
            case .head(let head):
                message.startLine = "\(head.method.rawValue) \(head.uri) \(head.version)"
                message.fields = head.headers.map(line)
            case .body(let buffer):
                message.body += text(buffer.readableBytesView)
            case .end(let trailers):
                message.trailers = trailers?.map(line) ?? []
            }
        }
    }

    private static func readResponseWithLLHTTP(_ input: [UInt8]) -> Result<ReadMessage, HTTPParserError> {
        let channel = EmbeddedChannel(
            handler: ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes)))
        let request = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        _ = try? channel.writeOutbound(HTTPClientRequestPart.head(request))
        return read(input, on: channel) { (part: HTTPClientResponsePart, message: inout ReadMessage) in
            switch part {
            case .head(let head):
                message.startLine = "\(head.version) \(head.status.code)"
                message.fields = head.headers.map(line)
            case .body(let buffer):
                message.body += text(buffer.readableBytesView)
            case .end(let trailers):
                message.trailers = trailers?.map(line) ?? []
            }
        }
    }

    /// NIO does not remove HTAB at the end of a value.
    private static func line(name: String, value: String) -> String {
        let end = value.utf8.lastIndex { $0 != 0x09 && $0 != 0x20 }
        return "\(name): \(end.map { String(value[...$0]) } ?? "")"
    }

    private static func read<Part>(
        _ input: [UInt8], on channel: EmbeddedChannel, collect: (Part, inout ReadMessage) -> Void
    ) -> Result<ReadMessage, HTTPParserError> {
        var message = ReadMessage()
        do {
            try channel.writeInbound(ByteBuffer(bytes: input))
            channel.pipeline.fireChannelInactive()
            try channel.throwIfErrorCaught()
            while let part = try channel.readInbound(as: Part.self) { collect(part, &message) }
            return .success(message)
        } catch let error as HTTPParserError {
            return .failure(error)
        } catch {
            return .failure(.unknown)
        }
    }
}
