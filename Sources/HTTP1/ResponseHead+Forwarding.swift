// SPDX-License-Identifier: Apache-2.0

/// How a response differs from the origin's when it reaches the client, apart from fields that concern one connection
/// only.
package struct ResponseChanges: Sendable {
    /// Appended after existing Via lines (RFC 9110 §7.6.3), unless it is nil.
    package var via: ViaField?
    /// Removes WWW-Authenticate and Authentication-Info, because the proxy has answered the challenge and not the
    /// client.
    package var dropsAuthentication = false
    /// Removes Access-Control-Allow-Origin, because the response was obtained with a credential of ours: no page of
    /// another origin may read it.
    package var dropsAllowOrigin = false
    /// Names must be tokens. Control characters in values become spaces, octets beyond ASCII become `?`.
    package var extraFields: [(String, String)] = []
    /// The values of further Set-Cookie lines, of responses that the client did not get. Control characters become
    /// spaces.
    package var setCookies: [ArraySlice<UInt8>] = []
    /// The response sets cookies that are kept secret: its head must not stay in memory.
    package var isSecret = false

    package init(via: ViaField? = nil) {
        self.via = via
    }
}

extension ResponseHead {
    /// The head for the client: HTTP/1.1, the origin's status and reason, the lines that are kept, unchanged and in
    /// order, then the new ones.
    ///
    /// `framing` is that of the forwarded body. `chunked` and `length` write their field, unless a received one already
    /// declares the length. `untilClose` forces `Connection: close`. With `none` the origin's valid Content-Length
    /// passes unchanged, as in a response to HEAD.
    package func forwarded(
        _ changes: ResponseChanges, framing: BodyFraming, connection: ConnectionOption = .keepAlive
    ) -> [UInt8] {
        HeadWriter.bytes(about: forwardedSize) { write(changes, framing: framing, connection: connection, into: $0) }
    }

    /// The approximate length of ``forwarded(_:framing:connection:)``.
    package var forwardedSize: Int { fields.bytes.count + 512 }

    /// Writes ``forwarded(_:framing:connection:)`` into `space` and returns its length. If that is more than `space`
    /// has, the contents of `space` are incomplete.
    package func write(
        _ changes: ResponseChanges, framing: BodyFraming, connection: ConnectionOption,
        into space: UnsafeMutableRawBufferPointer
    ) -> Int {
        HeadWriter.write(into: space) { writer in
            var run = 0..<0
            if version == .http11, hasSpaceBeforeReason {
                run = 0..<statusLineEnd
            } else {
                writer.append("HTTP/1.1 ")
                writer.append(statusBytes)
                writer.append(" ")
                writer.append(reasonBytes)
                writer.append("\r\n")
            }
            let kept = KeptFields(fields, declaring: framing)
            let passesLength = kept.keepsLength || framing == .none && describesContent
            writer.lines(of: fields, after: run) { keeps($0, changes, kept, passesLength: passesLength) }
            if !kept.keepsLength { writer.framing(framing) }
            writer.connection(framing == .untilClose ? .close : connection, upgrade: upgrade)
            writeNewFields(changes, to: &writer)
            writer.append("\r\n")
        }
    }

    // MARK: Fields

    /// Visits the received lines that are forwarded unchanged, for a version of HTTP whose heads are not lines. The
    /// fields of the connection are not among them. `framing` is as in ``forwarded(_:framing:connection:)``.
    package func forEachKeptField(
        _ changes: ResponseChanges, framing: BodyFraming, _ visit: (FieldLine) -> Void
    ) {
        let kept = KeptFields(fields, declaring: framing)
        let passesLength = kept.keepsLength || framing == .none && describesContent
        for line in fields.lines where keeps(line, changes, kept, passesLength: passesLength) { visit(line) }
    }

    /// Writes the fields that follow them as lines with CRLF, without an empty line, and returns their length. If that
    /// is more than `space` has, the contents of `space` are incomplete.
    package func writeNewFields(
        _ changes: ResponseChanges, framing: BodyFraming, into space: UnsafeMutableRawBufferPointer
    ) -> Int {
        HeadWriter.write(into: space) { writer in
            if case .length = framing, !fields.declares(framing) { writer.framing(framing) }
            writeNewFields(changes, to: &writer)
        }
    }

    @inline(__always)
    private func keeps(
        _ line: FieldLine, _ changes: ResponseChanges, _ kept: KeptFields, passesLength: Bool
    ) -> Bool {
        switch line.known {
        case .contentLength: passesLength
        case .countersignTrust: false
        case .wwwAuthenticate, .authenticationInfo: !changes.dropsAuthentication
        case .proxyStatus: ProxyStatus.renamed(fields.value(of: line)) == nil
        case .other, .foldedFraming:
            (!kept.removes || !kept.options.name(line.name, in: fields))
                && !(changes.dropsAllowOrigin && fields.isAllowOrigin(line))
        default: !line.known.isHopByHop
        }
    }

    @inline(__always)
    private func writeNewFields(_ changes: ResponseChanges, to writer: inout HeadWriter) {
        if fields.contains(.proxyStatus) { writer.renamedStatus(fields) }
        for (name, value) in changes.extraFields { writer.extraField(name, value) }
        for value in changes.setCookies { writer.field("Set-Cookie", octets: value) }
        if let via = changes.via { writer.append(via.line) }
    }

    /// Whether Content-Length is allowed in a response without a body: not in 1xx and 204 (RFC 9110 §8.6), not with
    /// Transfer-Encoding, and only if it is valid.
    private var describesContent: Bool {
        guard !isInformational, status != 204, !fields.contains(.transferEncoding) else { return false }
        return fields.framing.contentLength != nil
    }
}

extension HeadWriter {
    /// The lines of Proxy-Status that have our name, with another one in its place.
    fileprivate mutating func renamedStatus(_ fields: FieldLines) {
        for value in fields.values(of: .proxyStatus).compactMap(ProxyStatus.renamed) where !value.isEmpty {
            field("Proxy-Status", value, keepsNonASCII: true)
        }
    }
}
