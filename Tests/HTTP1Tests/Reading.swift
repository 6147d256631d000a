// SPDX-License-Identifier: Apache-2.0
@testable import CountersignHTTP1

/// The octets of `text`, in which `\u{80}` to `\u{FF}` represent one octet each.
func octets(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

func text(_ octets: some Sequence<UInt8>) -> String {
    String(String.UnicodeScalarView(octets.map { Unicode.Scalar($0) }))
}

func readRequest(_ text: String, limits: HeadLimits = .standard) throws(HTTP1Error) -> Parsed<RequestHead>? {
    try RequestHead.parse(octets(text).span.bytes, limits: limits)
}

func readResponse(_ text: String, limits: HeadLimits = .response) throws(HTTP1Error) -> Parsed<ResponseHead>? {
    try ResponseHead.parse(octets(text).span.bytes, limits: limits)
}

/// The error in `text`; nil if it is a head or the beginning of one.
func requestError(_ text: String, limits: HeadLimits = .standard) -> HTTP1Error? {
    do throws(HTTP1Error) {
        _ = try readRequest(text, limits: limits)
        return nil
    } catch {
        return error
    }
}

func responseError(_ text: String, limits: HeadLimits = .response) -> HTTP1Error? {
    do throws(HTTP1Error) {
        _ = try readResponse(text, limits: limits)
        return nil
    } catch {
        return error
    }
}

/// A decoded body: its content, and its trailers if it has ended.
struct DecodedBody: Equatable {
    var content = ""
    var trailers: [String] = []
    var isComplete = false
    var consumedBytes = 0
    var repair: HTTP1Error.Code?
}

/// Decodes `text` in pieces of `step` octets.
func decode(
    _ text: String, as framing: BodyFraming, step: Int = .max, limits: HeadLimits = .standard,
    sentBy sender: MessageSender = .client
) throws(HTTP1Error) -> DecodedBody {
    var decoder = BodyDecoder(framing, limits: limits, sentBy: sender)
    let input = octets(text)
    var body = DecodedBody()
    var start = 0
    repeat {
        let piece = Array(input[start..<min(input.count, start + min(step, input.count))])
        var offset = 0
        feeding: while true {
            switch try decoder.next(piece.span.bytes, from: &offset) {
            case .content(let range):
                body.content += CountersignHTTP1Tests.text(piece[range])
            case .needsMore:
                break feeding
            case .end(let trailers):
                body.trailers = trailers.map { fields in fields.lines.map { fields.name(of: $0) } } ?? []
                body.isComplete = true
                body.repair = decoder.repair
                body.consumedBytes = start + offset
                return body
            }
        }
        start += piece.count
    } while start < input.count
    body.consumedBytes = start
    return body
}

func bodyError(
    _ text: String, as framing: BodyFraming, step: Int = .max, limits: HeadLimits = .standard,
    sentBy sender: MessageSender = .client
) -> HTTP1Error.Code? {
    do throws(HTTP1Error) {
        _ = try decode(text, as: framing, step: step, limits: limits, sentBy: sender)
        return nil
    } catch {
        return error.code
    }
}
