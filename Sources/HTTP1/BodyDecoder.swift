// SPDX-License-Identifier: Apache-2.0

/// One step through a body.
package enum BodyPiece: Hashable, Sendable {
    /// A run of content, as offsets into the input.
    case content(Range<Int>)
    case needsMore
    /// The body is complete. `trailers` is nil unless there is a trailer section with at least one field.
    case end(trailers: FieldLines?)
}

/// Finds the content in a message body as it arrives (RFC 9112 §6, §7.1), without copying it.
///
/// An error is final: the connection must be closed, and the forwarded part of the message must not be ended cleanly.
package struct BodyDecoder: Sendable {
    private enum State: Sendable {
        case content(remaining: UInt64)
        case untilClose
        case chunkHeader
        case chunkContent(remaining: UInt64)
        case chunkCarriageReturn
        case chunkLineFeed
        case trailers
        case ended
    }

    private var state: State
    private var header: ChunkHeader
    private var trailers: [UInt8] = []
    /// How many octets of the current trailer line have been collected.
    private var trailerLineBytes = 0
    private var failure: HTTP1Error?
    /// The tolerated fault in the framing so far; nil without one. Only origins' bodies are repaired. After a repair,
    /// their connection serves no other exchange.
    package private(set) var repair: HTTP1Error.Code?
    private let limits: HeadLimits
    private let sender: MessageSender

    /// `sender` is the peer that errors are attributed to. The default of `limits` is for its messages.
    package init(_ framing: BodyFraming, limits: HeadLimits? = nil, sentBy sender: MessageSender = .client) {
        let limits = limits ?? (sender == .origin ? .response : .standard)
        switch framing {
        case .none, .length(0): state = .ended
        case .length(let length): state = .content(remaining: length)
        case .chunked: state = .chunkHeader
        case .untilClose: state = .untilClose
        }
        header = ChunkHeader(extensionLimit: limits.chunkExtensionBytes, sentBy: sender)
        self.limits = limits
        self.sender = sender
    }

    /// The last octet of the body has been consumed. Any octet after it belongs to the next message.
    package var isComplete: Bool {
        if case .ended = state { failure == nil } else { false }
    }

    /// The next piece of `input`, whose octets before `offset` have been consumed; moves `offset` past the octets that
    /// this piece consumes. Call it until it needs more or has ended. The decoder remembers a chunk header or trailer
    /// that continues in the next input.
    package mutating func next(_ input: RawSpan, from offset: inout Int) throws(HTTP1Error) -> BodyPiece {
        if let failure { throw failure }
        do throws(HTTP1Error) {
            return try advance(input, from: &offset)
        } catch {
            failure = error
            throw error
        }
    }

    /// The connection has ended. True if the body is complete, false if it was cut off.
    package mutating func inputEnded() -> Bool {
        if case .untilClose = state { state = .ended }
        return isComplete
    }

    private mutating func advance(_ input: RawSpan, from offset: inout Int) throws(HTTP1Error) -> BodyPiece {
        while true {
            if case .ended = state { return .end(trailers: nil) }
            guard offset < input.byteCount else { return .needsMore }
            switch state {
            case .ended:
                return .end(trailers: nil)
            case .untilClose:
                defer { offset = input.byteCount }
                return .content(offset..<input.byteCount)
            case .content(let remaining):
                let run = run(of: remaining, in: input, from: &offset)
                let left = remaining - UInt64(run.count)
                state = left == 0 ? .ended : .content(remaining: left)
                return .content(run)
            case .chunkContent(let remaining):
                let run = run(of: remaining, in: input, from: &offset)
                let left = remaining - UInt64(run.count)
                state = left == 0 ? .chunkCarriageReturn : .chunkContent(remaining: left)
                return .content(run)
            case .chunkHeader:
                let isWhole = try header.consume(input.byte(offset))
                offset += 1
                guard isWhole else { continue }
                if let code = header.repair { repair = code }
                state = header.size == 0 ? .trailers : .chunkContent(remaining: header.size)
                header.reset()
            case .chunkCarriageReturn:
                if input.byte(offset) == Octet.lineFeed, sender == .origin {
                    repair = .bareLineFeed
                    offset += 1
                    state = .chunkHeader
                    continue
                }
                try require(Octet.carriageReturn, input.byte(offset))
                offset += 1
                state = .chunkLineFeed
            case .chunkLineFeed:
                try require(Octet.lineFeed, input.byte(offset))
                offset += 1
                state = .chunkHeader
            case .trailers:
                let octet = input.byte(offset)
                offset += 1
                guard try collectTrailer(octet) else { continue }
                state = .ended
                return .end(trailers: try parsedTrailers())
            }
        }
    }

    /// As many of the `remaining` octets as `input` has; moves `offset` past them.
    private func run(of remaining: UInt64, in input: RawSpan, from offset: inout Int) -> Range<Int> {
        let start = offset
        offset += Int(Swift.min(UInt64(input.byteCount - start), remaining))
        return start..<offset
    }

    private func require(_ expected: UInt8, _ octet: UInt8) throws(HTTP1Error) {
        guard octet == expected else {
            throw HTTP1Error(.malformedChunk, "chunk content is longer than its size", sentBy: sender)
        }
    }

    /// True when `octet` ends the section's final empty line.
    private mutating func collectTrailer(_ octet: UInt8) throws(HTTP1Error) -> Bool {
        guard trailers.count < limits.trailerBytes + 2 else {
            throw HTTP1Error(
                .trailersTooLarge, "trailer section of more than \(limits.trailerBytes) bytes", sentBy: sender)
        }
        if octet == Octet.lineFeed, trailers.last != Octet.carriageReturn {
            guard sender == .origin else {
                throw HTTP1Error(.bareLineFeed, "line feed without carriage return", sentBy: sender)
            }
            repair = .bareLineFeed
            trailers.append(Octet.carriageReturn)
            trailerLineBytes += 1
        }
        trailers.append(octet)
        trailerLineBytes += 1
        guard octet == Octet.lineFeed else { return false }
        defer { trailerLineBytes = 0 }
        return trailerLineBytes == 2
    }

    private mutating func parsedTrailers() throws(HTTP1Error) -> FieldLines? {
        guard trailers.count > 2 else { return nil }
        let bytes = trailers
        trailers = []
        do throws(HTTP1Error) {
            return try FieldLines.trailers(bytes, limits: limits, sentBy: sender)
        } catch {
            // The body is complete without them, and a recipient may discard them (RFC 9110 §6.5.1).
            if sender == .origin, Self.hasCertainEnd(bytes) {
                repair = .malformedTrailers
                return nil
            }
            let code: HTTP1Error.Code = error.code == .tooManyFields ? .trailersTooLarge : .malformedTrailers
            throw HTTP1Error(code, "trailer section: \(error.detail)", sentBy: sender)
        }
    }

    /// Whether all readers find the end of `section` at the same place: NUL or a carriage return alone leave a doubt.
    private static func hasCertainEnd(_ section: [UInt8]) -> Bool {
        var follows = Octet.lineFeed
        for octet in section.reversed() {
            if octet == 0 || octet == Octet.carriageReturn && follows != Octet.lineFeed { return false }
            follows = octet
        }
        return true
    }
}
