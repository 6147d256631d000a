// SPDX-License-Identifier: Apache-2.0
import CountersignHTTP1

/// Larger than the defaults: a received head may be at the limit, and forwarding adds fields.
private let relaxed = HeadLimits(requestLineBytes: 32 * 1024, headBytes: 512 * 1024, fieldCount: 2_000)

/// A valid head keeps its meaning when it is forwarded, and is incomplete without its last octet.
@Sendable func requestHead(_ input: [UInt8]) {
    let start = TunnelStart(input.span.bytes)
    guard let parsed = try? RequestHead.parse(input.span.bytes) else { return }
    precondition(start == .http || input.first == 0x0D, "a request is not seen in a tunnel")
    let head = parsed.head
    precondition(parsed.consumedBytes <= input.count && head.fields.bytes.count <= parsed.consumedBytes)
    precondition(
        isIncomplete { () throws(HTTP1Error) in
            try RequestHead.parse(Array(input[..<(parsed.consumedBytes - 1)]).span.bytes) == nil
        })
    let forwarding = RequestForwarding(
        target: head.targetBytes, host: head.host ?? "a", framing: head.framing, connection: .upgrade)
    let once = head.forwarded(forwarding)
    guard let again = try? RequestHead.parse(once.span.bytes, limits: relaxed) else {
        fatalError("the forwarded head is rejected")
    }
    precondition(again.consumedBytes == once.count)
    precondition(again.head.framing == head.framing && again.head.methodText == head.methodText)
    precondition(again.head.forwarded(forwarding) == once)
    _ = head.upgrade
}

@Sendable func responseHead(_ input: [UInt8]) {
    guard let parsed = try? ResponseHead.parse(input.span.bytes) else { return }
    let head = parsed.head
    precondition(parsed.consumedBytes <= input.count)
    precondition(
        isIncomplete { () throws(HTTP1Error) in
            try ResponseHead.parse(Array(input[..<(parsed.consumedBytes - 1)]).span.bytes) == nil
        })
    guard let framing = try? head.framing(answering: .get) else { return }
    let once = head.forwarded(ResponseChanges(), framing: framing, connection: .upgrade)
    guard let again = try? ResponseHead.parse(once.span.bytes, limits: relaxed) else {
        fatalError("the forwarded head is rejected")
    }
    precondition(again.head.repair == nil, "the forwarded head is not clean")
    precondition(again.consumedBytes == once.count && again.head.status == head.status)
    precondition((try? again.head.framing(answering: .get)) == framing)
    precondition(again.head.forwarded(ResponseChanges(), framing: framing, connection: .upgrade) == once)
}

/// Also false if `parse` throws.
private func isIncomplete(_ parse: () throws(HTTP1Error) -> Bool) -> Bool { (try? parse()) ?? false }

/// A body is decoded the same in one piece as octet by octet.
@Sendable func chunkedBody(_ input: [UInt8]) {
    let whole = decode(input, step: max(input.count, 1))
    let octets = decode(input, step: 1)
    precondition(whole == octets, "the result depends on how the input is split")
    if let trailers = whole.trailers { _ = ChunkedEncoding.end(trailers: trailers) }
}

private struct DecodedBody: Equatable {
    var content: [UInt8] = []
    var trailers: FieldLines?
    var consumedBytes = 0
    var isComplete = false
    var fault: HTTP1Error?
}

private func decode(_ input: [UInt8], step: Int) -> DecodedBody {
    var body = DecodedBody()
    var decoder = BodyDecoder(.chunked, sentBy: .origin)
    var start = 0
    while start < input.count {
        let piece = Array(input[start..<min(input.count, start + step)])
        var offset = 0
        feeding: while true {
            do throws(HTTP1Error) {
                switch try decoder.next(piece.span.bytes, from: &offset) {
                case .content(let range):
                    body.content += piece[range]
                case .needsMore:
                    precondition(offset == piece.count, "octets were not consumed")
                    break feeding
                case .end(let trailers):
                    body.trailers = trailers
                    body.isComplete = true
                    body.consumedBytes = start + offset
                    return body
                }
            } catch {
                body.fault = error
                return body
            }
        }
        start += piece.count
    }
    body.consumedBytes = start
    return body
}
