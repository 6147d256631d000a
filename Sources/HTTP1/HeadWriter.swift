// SPDX-License-Identifier: Apache-2.0

/// Writes a head into memory that its caller provides. No value can smuggle in a line: control characters except HTAB
/// are replaced.
struct HeadWriter {
    /// The target. Once a piece does not fit, nothing further is written.
    private let space: UnsafeMutableRawBufferPointer
    /// The length of the head, including pieces that did not fit.
    private(set) var count = 0

    private init(_ space: UnsafeMutableRawBufferPointer) { self.space = space }

    /// Lets `body` write into `space` and returns the length of the head. If that is more than `space` has, the
    /// contents of `space` are incomplete.
    static func write(into space: UnsafeMutableRawBufferPointer, _ body: (inout HeadWriter) -> Void) -> Int {
        var writer = HeadWriter(space)
        body(&writer)
        return writer.count
    }

    /// The bytes that `write` produces in the memory it gets, initially `about` bytes. It returns their count and is
    /// called again with that much memory if they did not fit.
    static func bytes(about: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) -> [UInt8] {
        var capacity = about
        while true {
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { space, filled in
                count = write(UnsafeMutableRawBufferPointer(space))
                filled = count <= space.count ? count : 0
            }
            if bytes.count == count { return bytes }
            capacity = count
        }
    }

    /// The bytes that `body` writes, likely `about` of them.
    static func bytes(about: Int, _ body: (inout HeadWriter) -> Void) -> [UInt8] {
        bytes(about: about) { write(into: $0, body) }
    }

    private mutating func append(_ octets: UnsafeRawBufferPointer) {
        if octets.count > 0, count + octets.count <= space.count {
            UnsafeMutableRawBufferPointer(rebasing: space[count...]).copyMemory(from: octets)
        }
        count += octets.count
    }

    /// `octets` must be known to be valid: received and validated, or our own text.
    mutating func append(_ octets: [UInt8]) {
        octets.withUnsafeBytes { append($0) }
    }

    mutating func append(_ octets: ArraySlice<UInt8>) {
        octets.withUnsafeBytes { append($0) }
    }

    mutating func append(_ octets: [UInt8], _ range: Range<Int>) {
        octets.withUnsafeBytes { append(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    mutating func append(_ literal: StaticString) {
        literal.withUTF8Buffer { append(UnsafeRawBufferPointer($0)) }
    }

    mutating func append(text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a field line. Control characters in `value` become spaces, and octets beyond ASCII become `?` unless
    /// they are kept.
    mutating func field(_ name: StaticString, _ value: String, keepsNonASCII: Bool = false) {
        append(name)
        append(": ")
        append(sanitizing: value, keepsNonASCII: keepsNonASCII)
        append("\r\n")
    }

    /// Appends a field line with a secret value. Control characters become spaces.
    mutating func field(_ name: StaticString, _ value: any SecretFieldValue) {
        append(name)
        append(": ")
        value.forEachPart { append(sanitizing: $0, keepsNonASCII: true) }
        append("\r\n")
    }

    /// The same. `name` must be a token.
    mutating func field(named name: String, _ value: any SecretFieldValue) {
        append(text: name)
        append(": ")
        value.forEachPart { append(sanitizing: $0, keepsNonASCII: true) }
        append("\r\n")
    }

    /// Appends a field line with octets that were received. Control characters become spaces.
    mutating func field(_ name: StaticString, octets: ArraySlice<UInt8>) {
        append(name)
        append(": ")
        octets.withUnsafeBytes { append(sanitizing: $0, keepsNonASCII: true) }
        append("\r\n")
    }

    /// Appends a field line whose name is chosen by the user of this module.
    mutating func extraField(_ name: String, _ value: String) {
        precondition(!name.isEmpty && name.utf8.allSatisfy(Octet.isToken), "a field name of our own is not a token")
        append(text: name)
        append(": ")
        append(sanitizing: value, keepsNonASCII: false)
        append("\r\n")
    }

    private mutating func append(sanitizing value: String, keepsNonASCII: Bool) {
        var value = value
        value.withUTF8 { append(sanitizing: UnsafeRawBufferPointer($0), keepsNonASCII: keepsNonASCII) }
    }

    private mutating func append(sanitizing octets: UnsafeRawBufferPointer, keepsNonASCII: Bool) {
        guard !octets.bytes.isPrintable else { return append(octets) }
        for octet in octets {
            let kept: UInt8 =
                switch octet {
                case Octet.tab, 0x20..<0x7F: octet
                case 0x80...: keepsNonASCII ? octet : 0x3F
                default: Octet.space
                }
            withUnsafeBytes(of: kept) { append($0) }
        }
    }

    /// Appends `run`, a part of the same bytes, and then the lines for which `isKept` is true, unchanged and in order.
    /// Adjacent ones are copied together.
    mutating func lines(of fields: FieldLines, after run: Range<Int> = 0..<0, where isKept: (FieldLine) -> Bool) {
        var run = run
        for line in fields.lines where isKept(line) {
            let range = Range<Int>(line.line)
            if range.lowerBound == run.upperBound {
                run = run.lowerBound..<range.upperBound
            } else {
                append(fields.bytes, run)
                run = range
            }
        }
        append(fields.bytes, run)
    }

    /// Appends the Content-Length or Transfer-Encoding for `framing`.
    mutating func framing(_ framing: BodyFraming) {
        switch framing {
        case .none, .untilClose:
            break
        case .length(let length):
            append("Content-Length: ")
            append(text: String(length))
            append("\r\n")
        case .chunked:
            append("Transfer-Encoding: chunked\r\n")
        }
    }

    /// Appends Connection, and Upgrade if Connection names it.
    mutating func connection(_ option: ConnectionOption, upgrade: String?) {
        switch option {
        case .keepAlive:
            break
        case .close:
            append("Connection: close\r\n")
        case .upgrade:
            guard let upgrade else { return }
            append("Connection: upgrade\r\n")
            field("Upgrade", upgrade)
        }
    }
}

extension HeadWriter {
    /// Asks a parent proxy that speaks HTTP/1.0 to keep the connection, as browsers and curl do. It is in no standard
    /// (RFC 9112 appendix C.2.2), and the proxies of HTTP/1.1 ignore it.
    static var proxyKeepAlive: StaticString { "Proxy-Connection: keep-alive\r\n" }
}

/// The fate of the connection after the message, as declared in a head.
package enum ConnectionOption: Hashable, Sendable {
    /// The default of HTTP/1.1, for which no field is written.
    case keepAlive
    case close
    /// Offers or accepts the protocols of the message's own Upgrade field except h2c. Without such a field it is
    /// `keepAlive`.
    case upgrade
}

/// The line that the proxy appends to forwarded messages (RFC 9110 §7.6.3), formatted once.
package struct ViaField: Hashable, Sendable {
    let line: [UInt8]

    /// `value` is for example `1.1 countersign`. Control characters become spaces, octets beyond ASCII become `?`.
    package init(_ value: String) {
        line = HeadWriter.bytes(about: value.utf8.count + 8) { $0.field("Via", value) }
    }
}
