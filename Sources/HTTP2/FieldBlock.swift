// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// A field block that is being received, as the head of an HTTP/1 message: the strict parser of HTTP/1 then decides
/// about it, and everything behind it is the same for both versions.
///
/// nghttp2 has enforced before: names in lower case, no connection fields, `te` with `trailers` only, pseudo-fields
/// before others, each once and none unknown or missing, no control characters, and one `content-length` that agrees
/// with the content (RFC 9113 §8.1.1–8.3). Here follow the scheme, `:authority` and `host` as one thing, one `cookie`,
/// CONNECT, and the rules of the parser. The names of a request's fields get the capitals that clients of HTTP/1 write,
/// because some small servers compare them with these.
struct FieldBlock: ~Copyable {
    enum Kind {
        case request
        case response
        case trailers
    }

    private(set) var kind = Kind.request
    private(set) var extendedProtocol: String?
    /// Names of fields received as never indexed, except those that we never index anyway.
    private(set) var neverIndexed: [[UInt8]] = []
    /// The block is far beyond the limit, so its connection ends.
    var isBomb: Bool { fieldBytes > FieldBlock.bombFactor * (limits.headBytes + limits.requestLineBytes) }

    private static let bombFactor = 4
    /// Counted for each field in addition to its octets (RFC 9113 §6.5.2).
    private static let fieldOverheadBytes = 32

    private let limits: HeadLimits
    private let scheme: StaticString
    private let webSocketKey: (@Sendable () -> String)?
    /// The pseudo-fields, and then the head.
    private var scratch = FieldScratch()
    /// The values of `cookie`, joined.
    private var cookies = FieldScratch()
    private var pseudo = PseudoFields()
    /// The offset of the head in `scratch`.
    private var headStart: Int?
    private var lineCount = 0
    private var fieldBytes = 0
    private var isTooLarge = false
    private var fault: HTTP2Refusal?

    init(_ settings: HTTP2Settings) {
        limits = settings.limits
        scheme = settings.scheme
        webSocketKey = settings.webSocketKey
    }

    /// The pseudo-fields' values, as ranges of `scratch`.
    private struct PseudoFields {
        var method: Range<Int>?
        var scheme: Range<Int>?
        var authority: Range<Int>?
        var path: Range<Int>?
        var status: Range<Int>?
        var extendedProtocol: Range<Int>?
    }

    // MARK: Receiving

    mutating func begin(_ kind: Kind) {
        clear()
        self.kind = kind
        if kind == .trailers { headStart = 0 }
    }

    /// Forgets the block.
    mutating func clear() {
        scratch.clear()
        if cookies.count > 0 { cookies.clear() }
        pseudo = PseudoFields()
        headStart = nil
        lineCount = 0
        fieldBytes = 0
        isTooLarge = false
        fault = nil
        extendedProtocol = nil
        if !neverIndexed.isEmpty { neverIndexed = [] }
    }

    mutating func add(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isNeverIndexed: Bool) {
        fieldBytes += name.count + value.count + FieldBlock.fieldOverheadBytes
        let limit = kind == .trailers ? limits.trailerBytes : limits.headBytes + limits.requestLineBytes
        guard fieldBytes <= limit, !isTooLarge else {
            isTooLarge = true
            return
        }
        if name.first == UInt8(ascii: ":") {
            addPseudo(name, value)
        } else {
            startHead()
            if isNeverIndexed, !FieldList.isSecret(name) { neverIndexed.append(Array(name)) }
            addField(name, value)
        }
    }

    private mutating func addPseudo(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        let range = scratch.count..<scratch.count + value.count
        scratch.append(value)
        // nghttp2 passes the six known names only.
        switch name[1] {
        case UInt8(ascii: "m"): pseudo.method = range
        case UInt8(ascii: "a"): pseudo.authority = range
        case UInt8(ascii: "p"):
            if name.count == 5 { pseudo.path = range } else { pseudo.extendedProtocol = range }
        default:
            if name.count == 7, name[2] == UInt8(ascii: "t") { pseudo.status = range } else { pseudo.scheme = range }
        }
    }

    private mutating func addField(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        if kind == .request, name.count == 6, name.elementsEqual("cookie".utf8) {
            if cookies.count > 0 { cookies.append("; ") }
            cookies.append(value)
            return
        }
        if kind == .request, let authority = pseudo.authority, name.count == 4, name.elementsEqual("host".utf8) {
            let same = UnsafeRawBufferPointer(rebasing: scratch.octets[authority]).elementsEqual(value) { one, other in
                lowercased(one) == lowercased(other)
            }
            if !same { refuse("host differs from :authority") }
            return
        }
        // Its place is taken by one of our own.
        if pseudo.extendedProtocol != nil, name.elementsEqual("sec-websocket-key".utf8) { return }
        lineCount += 1
        if kind == .request { scratch.append(capitalising: name) } else { scratch.append(name) }
        scratch.append(": ")
        scratch.append(value)
        scratch.append("\r\n")
    }

    private func lowercased(_ octet: UInt8) -> UInt8 { octet &- 0x41 < 26 ? octet | 0x20 : octet }

    private mutating func refuse(_ detail: String, _ status: Int = 400) {
        if fault == nil { fault = HTTP2Refusal(detail: detail, statusHint: status) }
    }

    // MARK: The start of the head

    /// Once the pseudo-fields are complete.
    private mutating func startHead() {
        guard headStart == nil else { return }
        headStart = scratch.count
        switch kind {
        case .trailers: break
        case .request: startRequest()
        case .response:
            scratch.append("HTTP/1.1 ")
            if let status = pseudo.status { scratch.append(status) }
            scratch.append(" \r\n")
        }
    }

    private mutating func startRequest() {
        guard let method = pseudo.method, let path = pseudo.path, let scheme = pseudo.scheme else {
            // Only CONNECT has no path (RFC 9113 §8.5).
            return refuse("CONNECT inside HTTP/2", 501)
        }
        if !scratch.octets[scheme].elementsEqual(self.scheme.octets) {
            refuse("the scheme is not that of the connection")
        }
        if scratch.octets[path].contains(UInt8(ascii: "#")) { refuse("a fragment in :path") }
        if let name = pseudo.extendedProtocol {
            let other = String(decoding: scratch.octets[name], as: UTF8.self)
            extendedProtocol = other
            if other.lowercased() != "websocket" { refuse("a protocol other than websocket", 501) }
            scratch.append("GET")
        } else if scratch.octets[method].elementsEqual("CONNECT".utf8) {
            refuse("CONNECT inside HTTP/2", 501)
        } else {
            scratch.append(method)
        }
        scratch.append(" ")
        scratch.append(path)
        scratch.append(" HTTP/1.1\r\n")
        if let authority = pseudo.authority {
            scratch.append("Host: ")
            scratch.append(authority)
            scratch.append("\r\n")
            lineCount += 1
        }
        if pseudo.extendedProtocol != nil, let webSocketKey {
            scratch.append("Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ")
            scratch.append(text: webSocketKey())
            scratch.append("\r\n")
            lineCount += 3
        }
    }

    // MARK: The message

    /// The request that the block is. Without END_STREAM and Content-Length, its framing is `.chunked`.
    mutating func request(endsStream: Bool) throws(HTTP2Refusal) -> RequestHead {
        let pathBytes = pseudo.path?.count ?? 0
        let head = try parsed { bytes, limits throws(HTTP1Error) in try RequestHead.parse(bytes, limits: limits) }
        let fields = head.fields
        // Nothing that was a value may have become a line or a part of the request-line.
        guard fields.lines.count == lineCount, head.targetRange.count == pathBytes, head.version == .http11 else {
            throw HTTP2Refusal(detail: "a field value with the form of a line", statusHint: 400)
        }
        try requireNoConnectionFields(fields, isUpgrade: extendedProtocol != nil)
        if extendedProtocol != nil {
            // What follows is no content, but octets of the other protocol.
            guard !head.hasBody else { throw HTTP2Refusal(detail: "a WebSocket with content", statusHint: 400) }
            return head
        }
        return endsStream ? head : head.withMarkedEnd()
    }

    /// The response that the block is. A response over HTTP/2 is not repaired.
    mutating func response() throws(HTTP2Refusal) -> ResponseHead {
        let head = try parsed { bytes, limits throws(HTTP1Error) in try ResponseHead.parse(bytes, limits: limits) }
        guard head.repair == nil, head.fields.lines.count == lineCount, head.status != 101 else {
            throw HTTP2Refusal(detail: "a response that HTTP/2 does not allow", statusHint: 502)
        }
        try requireNoConnectionFields(head.fields, isUpgrade: false)
        return head
    }

    /// The framing of the content of `response`, as far as its head decides it.
    func framing(
        of response: ResponseHead, answering method: Method, endsStream: Bool
    ) throws(HTTP2Refusal) -> BodyFraming {
        do throws(HTTP1Error) {
            let framing = try response.framing(answering: method)
            switch framing {
            case .untilClose: return endsStream ? .length(0) : .chunked
            // END_STREAM is still to come, and trailers may come with it.
            case .length(0) where !endsStream: return .chunked
            default: return framing
            }
        } catch {
            throw HTTP2Refusal(detail: error.detail, statusHint: error.statusHint)
        }
    }

    /// The trailers that the block is; nil if it is empty.
    mutating func trailers() throws(HTTP2Refusal) -> FieldLines? {
        guard lineCount > 0 || isTooLarge else { return nil }
        guard !isTooLarge else { throw HTTP2Refusal(detail: "trailers beyond the limit", statusHint: 431) }
        scratch.append("\r\n")
        let trailers: FieldLines
        do throws(HTTP1Error) {
            trailers = try FieldLines.trailers(Array(scratch.octets), limits: limits, sentBy: .client)
        } catch {
            throw HTTP2Refusal(detail: error.detail, statusHint: error.statusHint)
        }
        guard trailers.lines.count == lineCount else {
            throw HTTP2Refusal(detail: "a field value with the form of a line", statusHint: 400)
        }
        return trailers
    }

    /// Ends the head and parses it.
    private mutating func parsed<Head>(
        _ parse: (RawSpan, HeadLimits) throws(HTTP1Error) -> Parsed<Head>?
    ) throws(HTTP2Refusal) -> Head {
        startHead()
        if isTooLarge { throw HTTP2Refusal(detail: "head beyond the limit", statusHint: kind == .request ? 431 : 502) }
        if let fault { throw fault }
        if cookies.count > 0 {
            lineCount += 1
            scratch.append("Cookie: ")
            scratch.append(cookies.octets)
            scratch.append("\r\n")
        }
        scratch.append("\r\n")
        let head = UnsafeRawBufferPointer(rebasing: scratch.octets[(headStart ?? 0)...])
        let parsed: Parsed<Head>?
        do throws(HTTP1Error) { parsed = try parse(head.bytes, limits) } catch {
            throw HTTP2Refusal(detail: error.detail, statusHint: error.statusHint)
        }
        guard let parsed, parsed.consumedBytes == head.count else {
            throw HTTP2Refusal(detail: "an incomplete head", statusHint: 400)
        }
        return parsed.head
    }

    /// Fields that frame a message or apply to a connection do not exist in HTTP/2 (RFC 9113 §8.2.2).
    private func requireNoConnectionFields(_ fields: FieldLines, isUpgrade: Bool) throws(HTTP2Refusal) {
        let hasConnection = fields.contains(.connection) || fields.contains(.upgrade)
        if fields.contains(.transferEncoding) || fields.contains(.keepAlive) || fields.contains(.proxyConnection)
            || hasConnection && !isUpgrade
        {
            throw HTTP2Refusal(detail: "a connection field in HTTP/2", statusHint: kind == .response ? 502 : 400)
        }
    }
}
