// SPDX-License-Identifier: Apache-2.0

/// A field value that is secret. It is written straight into the head, without a copy elsewhere.
package protocol SecretFieldValue: Sendable {
    var byteCount: Int { get }

    /// Passes the value to `write` in parts, in order.
    func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void)
}

/// A field in addition to the client's, or in place of the client's lines of this name.
package struct AddedField: Sendable {
    /// A token (RFC 9110 §5.6.2).
    package let name: String
    package let value: any SecretFieldValue
    package let replaces: Bool

    package init(_ name: String, _ value: any SecretFieldValue, replaces: Bool = false) {
        precondition(!name.isEmpty && name.utf8.allSatisfy(Octet.isToken), "a field name of our own is not a token")
        self.name = name
        self.value = value
        self.replaces = replaces
    }
}

/// The parts of a request that are written anew for the next hop. Not copyable, so that using it never copies its
/// fields.
package struct RequestForwarding: ~Copyable, Sendable {
    /// The request-target: origin-form, absolute-form, authority-form or `*`. Octets that are not visible ASCII are
    /// percent-encoded.
    package var target: ArraySlice<UInt8>
    /// The target contains a secret.
    package var hidesTarget: Bool
    /// The value of Host, from the target (RFC 9112 §3.2.2).
    package var host: String
    /// The framing of the forwarded body. Never `untilClose`, which is for responses only.
    package var framing: BodyFraming
    /// Replaces the client's own Authorization lines; nil to pass them unchanged.
    package var authorization: (any SecretFieldValue)?
    /// Replaces the client's Cookie lines; nil to pass them unchanged.
    package var cookie: (any SecretFieldValue)?
    /// Appended to the client's lines.
    package var added: [AddedField]
    /// The names of the client's fields that are left out, also with `_` for `-`. Fields that frame the message are not
    /// among them.
    package var omitted: [String]
    /// Appended after existing Via lines, unless it is nil.
    package var via: ViaField?
    package var connection: ConnectionOption
    /// The next hop is a parent proxy that forwards the request. The request asks it to keep the connection in the form
    /// that HTTP/1.0 proxies know.
    package var isForParent: Bool
    /// Whether Expect is forwarded.
    package var keepsExpect: Bool
    /// Whether `Expect: 100-continue` is added. Only for a request that has no Expect.
    package var expectsContinue: Bool
    /// Replaces Max-Forwards; nil to pass it unchanged.
    package var maxForwards: UInt?

    package init(
        target: ArraySlice<UInt8>, host: String, framing: BodyFraming, authorization: (any SecretFieldValue)? = nil,
        via: ViaField? = nil, connection: ConnectionOption = .keepAlive, keepsExpect: Bool = false,
        expectsContinue: Bool = false, maxForwards: UInt? = nil, cookie: (any SecretFieldValue)? = nil,
        added: [AddedField] = [], omitted: [String] = [], hidesTarget: Bool = false, isForParent: Bool = false
    ) {
        self.target = target
        self.hidesTarget = hidesTarget
        self.host = host
        self.framing = framing
        self.authorization = authorization
        self.via = via
        self.connection = connection
        self.keepsExpect = keepsExpect
        self.expectsContinue = expectsContinue
        self.maxForwards = maxForwards
        self.cookie = cookie
        self.added = added
        self.omitted = omitted
        self.isForParent = isForParent
    }
}

extension RequestForwarding {
    /// Whether an added field takes the place of the line, or the line is left out. Servers that hand fields on as
    /// variables (RFC 3875 §4.1.18) read `_` and `-` alike, so what is left out, is left out in both spellings.
    fileprivate func replaces(_ line: FieldLine, of fields: FieldLines) -> Bool {
        let name = fields.bytes[Range(line.name)]
        func isName(_ other: String, _ folded: (UInt8) -> UInt8) -> Bool {
            name.count == other.utf8.count && zip(name, other.utf8).allSatisfy { folded($0) == folded($1) }
        }
        return added.contains { $0.replaces && isName($0.name, Octet.lowercased) }
            || omitted.contains { isName($0) { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : Octet.lowercased($0) } }
    }
}

extension RequestHead {
    /// The head for the next hop: HTTP/1.1, Host first, then the lines that are kept, unchanged and in order, then the
    /// new ones.
    package func forwarded(_ forwarding: borrowing RequestForwarding) -> [UInt8] {
        HeadWriter.bytes(about: forwardedSize(forwarding)) { write(forwarding, into: $0) }
    }

    /// The approximate length of ``forwarded(_:)``.
    package func forwardedSize(_ forwarding: borrowing RequestForwarding) -> Int {
        fields.bytes.count + forwarding.target.count + 512 + (forwarding.authorization?.byteCount ?? 0)
            + (forwarding.cookie?.byteCount ?? 0)
            + forwarding.added.reduce(0) { $0 + $1.value.byteCount + 32 }
    }

    /// Writes ``forwarded(_:)`` into `space` and returns its length. If that is more than `space` has, the contents of
    /// `space` are incomplete.
    package func write(_ forwarding: borrowing RequestForwarding, into space: UnsafeMutableRawBufferPointer) -> Int {
        precondition(forwarding.framing != .untilClose, "the end of the connection cannot end a request")
        return HeadWriter.write(into: space) { writer in
            // The method and the space after it.
            writer.append(fields.bytes, 0..<targetRange.lowerBound)
            var run = 0..<0
            if isEndOfTarget(forwarding.target) {
                run = forwarding.target.startIndex..<requestLineEnd
            } else {
                appendTarget(forwarding.target, to: &writer)
                writer.append(" HTTP/1.1\r\n")
            }
            let keepsHost = beginsWithHost(forwarding.host)
            if !keepsHost {
                writer.append(fields.bytes, run)
                run = 0..<0
                writer.field("Host", forwarding.host)
            }
            let kept = KeptFields(fields, declaring: forwarding.framing)
            writer.lines(of: fields, after: run) { line in
                line.known == .host ? keepsHost : keeps(line, forwarding, kept)
            }
            writeNewFields(forwarding, kept, framing: forwarding.framing, to: &writer)
            writer.connection(forwarding.connection, upgrade: upgrade)
            if forwarding.isForParent { writer.append(HeadWriter.proxyKeepAlive) }
            if let via = forwarding.via { writer.append(via.line) }
            writer.append("\r\n")
        }
    }

    // MARK: Fields

    /// Visits the received lines that are forwarded unchanged, for a version of HTTP whose heads are not lines. Host is
    /// not among them, and neither are the fields of the connection.
    package func forEachKeptField(_ forwarding: borrowing RequestForwarding, _ visit: (FieldLine) -> Void) {
        let kept = KeptFields(fields, declaring: forwarding.framing)
        for line in fields.lines where line.known != .host && keeps(line, forwarding, kept) { visit(line) }
    }

    /// Writes the fields that follow them as lines with CRLF, without an empty line, and returns their length. If that
    /// is more than `space` has, the contents of `space` are incomplete.
    package func writeNewFields(
        _ forwarding: borrowing RequestForwarding, into space: UnsafeMutableRawBufferPointer
    ) -> Int {
        HeadWriter.write(into: space) { writer in
            let length: BodyFraming = forwarding.framing.isChunked ? .none : forwarding.framing
            writeNewFields(forwarding, KeptFields(fields, declaring: length), framing: length, to: &writer)
            if let via = forwarding.via { writer.append(via.line) }
        }
    }

    /// Whether a line other than Host is forwarded unchanged.
    @inline(__always)
    private func keeps(
        _ line: FieldLine, _ forwarding: borrowing RequestForwarding, _ kept: borrowing KeptFields
    ) -> Bool {
        switch line.known {
        case .host, .countersignTrust: false
        case .contentLength: kept.keepsLength
        case .authorization:
            forwarding.authorization == nil
                && (forwarding.added.isEmpty || !forwarding.replaces(line, of: fields))
        case .cookie: forwarding.cookie == nil
        case .expect: forwarding.keepsExpect
        case .maxForwards: forwarding.maxForwards == nil
        case .other:
            (!kept.removes || !kept.options.name(line.name, in: fields))
                && (forwarding.added.isEmpty && forwarding.omitted.isEmpty || !forwarding.replaces(line, of: fields))
        default: !line.known.isHopByHop
        }
    }

    @inline(__always)
    private func writeNewFields(
        _ forwarding: borrowing RequestForwarding, _ kept: borrowing KeptFields, framing: BodyFraming,
        to writer: inout HeadWriter
    ) {
        if let maxForwards = forwarding.maxForwards { writer.field("Max-Forwards", String(maxForwards)) }
        if let authorization = forwarding.authorization { writer.field("Authorization", authorization) }
        if let cookie = forwarding.cookie, cookie.byteCount > 0 { writer.field("Cookie", cookie) }
        for field in forwarding.added { writer.field(named: field.name, field.value) }
        if forwarding.expectsContinue { writer.append("Expect: 100-continue\r\n") }
        if !kept.keepsLength { writer.framing(framing) }
    }

    /// Writes the target of `forwarding` and returns its length, as ``writeNewFields(_:into:)`` does.
    package func writeTarget(
        _ forwarding: borrowing RequestForwarding, into space: UnsafeMutableRawBufferPointer
    ) -> Int {
        HeadWriter.write(into: space) { appendTarget(forwarding.target, to: &$0) }
    }

    // MARK: The start of the head

    /// The offset after the CRLF.
    private var requestLineEnd: Int { targetRange.upperBound + " HTTP/1.1\r\n".utf8.count }

    /// Whether `target` is the last part of the received target and the version is 1.1, so that the rest of the
    /// request-line can be copied unchanged.
    private func isEndOfTarget(_ target: ArraySlice<UInt8>) -> Bool {
        guard version == .http11, !target.isEmpty, target.endIndex == targetRange.upperBound else { return false }
        return target.withUnsafeBytes { target in
            fields.bytes.withUnsafeBytes { bytes in
                bytes.baseAddress.map { $0 + targetRange.upperBound - target.count } == target.baseAddress
            }
        }
    }

    /// Whether the first line is already `Host` with this value.
    private func beginsWithHost(_ host: String) -> Bool {
        guard let first = fields.lines.first, first.known == .host, fields.isPlain(first) else { return false }
        return fields.bytes.span.bytes.equals(host, at: Range(first.value))
    }

    private func appendTarget(_ target: ArraySlice<UInt8>, to writer: inout HeadWriter) {
        let span = target.span.bytes
        guard span.firstNotVisible(from: 0) < span.byteCount else {
            writer.append(target)
            return
        }
        let digits = Array("0123456789ABCDEF".utf8)
        for octet in target {
            if octet > 0x20 && octet < 0x7F {
                writer.append([octet])
            } else {
                writer.append([0x25, digits[Int(octet >> 4)], digits[Int(octet & 15)]])
            }
        }
    }
}
