// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Replaces the signatures in a body in the coding aws-chunked (S3 API Reference, "Signature Calculations for the
/// Authorization Header: Transferring Payload in Multiple Chunks"):
///
///     SIZE;chunk-signature=64DIGITS CRLF DATA CRLF ... 0;chunk-signature=64DIGITS CRLF [FIELD:VALUE CRLF ...] CRLF
///
/// The body keeps its length. Each signature covers the one before it, and the first that of the request. A chunk is
/// kept until it is whole, because its signature goes first. The sizes and the trailers pass as they are.
package struct ChunkSigner: Sendable {
    /// The largest chunk, of which one at a time is in memory.
    package static let maximumChunkBytes = 1 << 20
    private static let maximumHeaderBytes = 128
    private static let maximumTrailerBytes = 16_384
    private static let emptyHash = SignedPayload.hash { _ in }
    private static let parameter = ";chunk-signature="

    private enum State: Sendable {
        case header
        /// The header without its signature, and the size of the data.
        case data(header: String, sizeBytes: Int)
        case trailers
        case ended
    }

    private let key: SigningKey
    private let timestamp: SignatureTimestamp
    private let hasTrailers: Bool
    private var state = State.header
    private var previous: String
    /// The octets received that do not make up a whole part yet.
    private var pending: [UInt8] = []
    /// The trailers so far, in the form that is signed, and how many octets they took.
    private var trailers = ""
    private var trailerBytes = 0
    private var hasSignedTrailers = false

    init(key: SigningKey, timestamp: SignatureTimestamp, seed: String, hasTrailers: Bool) {
        self.key = key
        self.timestamp = timestamp
        self.hasTrailers = hasTrailers
        previous = seed
    }

    /// The next part of the body for the server; empty while a chunk is incomplete. `content` is the next part from the
    /// client. After an error the body cannot be continued.
    package mutating func received(_ content: some Collection<UInt8>) throws(AWSSignatureError) -> [UInt8] {
        pending += content
        var output: [UInt8] = []
        var position = 0
        while try step(from: &position, to: &output) {}
        pending.removeFirst(position)
        return output
    }

    /// The client has sent its last octet. Throws if the body is not complete.
    package func ended() throws(AWSSignatureError) {
        guard case .ended = state, pending.isEmpty else {
            throw AWSSignatureError(.malformed, "the body ends before its last chunk does")
        }
    }

    /// Takes one part from `pending` at `position`. Returns false while it is incomplete.
    private mutating func step(from position: inout Int, to output: inout [UInt8]) throws(AWSSignatureError) -> Bool {
        switch state {
        case .header:
            guard let line = try line(at: position, atMost: Self.maximumHeaderBytes) else { return false }
            let (header, sizeBytes) = try Self.chunk(pending[position..<(line - 2)])
            state = .data(header: header, sizeBytes: sizeBytes)
            position = line
        case .data(let header, let sizeBytes):
            // The last chunk is complete without data; in front of trailers there is no empty line either.
            let closing = sizeBytes == 0 && hasTrailers ? 0 : 2
            guard pending.count - position >= sizeBytes + closing else { return false }
            let data = pending[position..<(position + sizeBytes)]
            position += sizeBytes + closing
            guard pending[data.endIndex..<position].elementsEqual("\r\n".utf8.prefix(closing)) else {
                throw AWSSignatureError(.malformed, "the data of a chunk does not end in CRLF")
            }
            let hash = data.withUnsafeBytes { bytes in SignedPayload.hash { $0(bytes) } }
            previous = key.signature(
                "AWS4-HMAC-SHA256-PAYLOAD", timestamp, [previous, Self.emptyHash, hash])
            output += "\(header)\(previous)\r\n".utf8
            output += pending[data.startIndex..<position]
            state = sizeBytes > 0 ? .header : hasTrailers ? .trailers : .ended
        case .trailers:
            guard let end = try trailer(at: position, to: &output) else { return false }
            position = end
        case .ended:
            guard position == pending.count else {
                throw AWSSignatureError(.malformed, "the body goes on after its last chunk")
            }
            return false
        }
        return true
    }

    /// The offset after the CRLF of the line at `start`; nil while it is incomplete.
    private func line(at start: Int, atMost limitBytes: Int) throws(AWSSignatureError) -> Int? {
        guard let feed = pending[start...].prefix(limitBytes).firstIndex(of: 0x0A) else {
            guard pending.count - start < limitBytes else {
                throw AWSSignatureError(.malformed, "the header of a chunk has more than \(limitBytes) bytes")
            }
            return nil
        }
        guard feed > start, pending[feed - 1] == 0x0D else {
            throw AWSSignatureError(.malformed, "the header of a chunk does not end in CRLF")
        }
        return feed + 1
    }

    /// The header without its signature, and the size of the data.
    private static func chunk(_ line: ArraySlice<UInt8>) throws(AWSSignatureError) -> (header: String, sizeBytes: Int) {
        let text = String(decoding: line, as: UTF8.self)
        guard let range = text.firstRange(of: parameter), (1...16).contains(text[..<range.lowerBound].utf8.count),
            text[..<range.lowerBound].utf8.allSatisfy({ Hex.value(of: $0) != nil }),
            text[range.upperBound...].utf8.count == 64, Hex.decode(text[range.upperBound...]) != nil
        else {
            throw AWSSignatureError(.malformed, "the header of a chunk is not SIZE;chunk-signature=64DIGITS")
        }
        guard let size = Int(text[..<range.lowerBound], radix: 16), size <= maximumChunkBytes else {
            throw AWSSignatureError(
                .tooLarge, "a chunk has more than \(maximumChunkBytes) bytes",
                hint: "have the client send smaller chunks, or leave the payload unsigned")
        }
        return (String(text[..<range.upperBound]), size)
    }

    // MARK: Trailers

    /// The offset after the line of the trailers at `start`; nil while it is incomplete. Clients differ in the line
    /// ends, so those pass as they are.
    private mutating func trailer(at start: Int, to output: inout [UInt8]) throws(AWSSignatureError) -> Int? {
        let feed = pending[start...].firstIndex(of: 0x0A)
        guard trailerBytes + (feed ?? pending.count) - start < Self.maximumTrailerBytes else {
            throw AWSSignatureError(.tooLarge, "the trailers have more than \(Self.maximumTrailerBytes) bytes")
        }
        guard let feed else { return nil }
        trailerBytes += feed + 1 - start
        let line = pending[start...feed]
        let isEnded = line.count > 1 && line[line.endIndex - 2] == 0x0D
        let text = String(decoding: line.dropLast(isEnded ? 2 : 1), as: UTF8.self)
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        if text.isEmpty {
            // The line that ends the section, or a client's extra one.
            if hasSignedTrailers { state = .ended }
            output += line
        } else if halves.count == 2, halves[0].lowercased() == "x-amz-trailer-signature", !hasSignedTrailers {
            let digits = halves[1].drop { $0 == " " }
            guard digits.utf8.count == 64, Hex.decode(digits) != nil else {
                throw AWSSignatureError(.malformed, "the signature of the trailers is not 64 hexadecimal digits")
            }
            let hash = SignedPayload.hash { update in Array(trailers.utf8).withUnsafeBytes { update($0) } }
            previous = key.signature("AWS4-HMAC-SHA256-TRAILER", timestamp, [previous, hash])
            hasSignedTrailers = true
            let place = line.startIndex + text.utf8.count - 64
            output += pending[start..<place] + previous.utf8 + pending[(place + 64)...feed]
        } else {
            guard halves.count == 2, !halves[0].isEmpty, halves[0].utf8.allSatisfy(Octets.isToken), !hasSignedTrailers
            else { throw AWSSignatureError(.malformed, "a trailer is not NAME:VALUE before x-amz-trailer-signature") }
            let value = CanonicalRequest.value([Array(halves[1].utf8)])
            trailers += "\(halves[0].lowercased()):\(String(decoding: value, as: UTF8.self))\n"
            output += line
        }
        return feed + 1
    }
}
