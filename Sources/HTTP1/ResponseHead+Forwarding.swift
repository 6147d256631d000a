// SPDX-License-Identifier: Apache-2.0

/// What is made anew when a response goes to the client.
package struct ResponseForwarding: Sendable {
    /// How the body goes out: `chunked` and `length` write their field, unless one that came says the length already;
    /// `untilClose` forces `Connection: close`; and with `none` the origin's sound Content-Length passes as it came, as in an
    /// answer to HEAD.
    package var framing: BodyFraming
    package var connection: ConnectionOption
    /// Appended after the Via lines that are there; nil: nothing is.
    package var via: ViaField?
    /// Leaves out WWW-Authenticate and Authentication-Info: they speak to whoever answered the challenge, and that was the proxy.
    package var dropsAuthentication = false
    /// Names are tokens of ours; control characters in values become spaces and octets beyond ASCII `?`.
    package var extraFields: [(String, String)]

    package init(
        framing: BodyFraming, connection: ConnectionOption = .keepAlive, via: ViaField? = nil,
        extraFields: [(String, String)] = []
    ) {
        self.framing = framing
        self.connection = connection
        self.via = via
        self.extraFields = extraFields
    }
}

extension ResponseHead {
    /// The head for the client: HTTP/1.1, the origin's status and reason, the kept lines byte for byte and in order,
    /// then what is made anew.
    package func forwarded(_ forwarding: ResponseForwarding) -> [UInt8] {
        HeadWriter.bytes(about: forwardedSize) { write(forwarding, into: $0) }
    }

    /// About as many bytes as ``forwarded(_:)`` has.
    package var forwardedSize: Int { fields.bytes.count + 512 }

    /// Writes ``forwarded(_:)`` into `room`. How many bytes that is; where it is more than the room has, what stands there is of no
    /// use.
    package func write(_ forwarding: ResponseForwarding, into room: UnsafeMutableRawBufferPointer) -> Int {
        HeadWriter.write(into: room) { writer in
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
            let removes = fields.connection.removesFields
            let options = ConnectionOptions.of(fields)
            let keepsLength = fields.says(forwarding.framing)
            let passesLength = keepsLength || forwarding.framing == .none && describesContent
            writer.lines(of: fields, behind: run) { line in
                switch line.known {
                case .contentLength: passesLength
                case .countersignTrust: false
                case .wwwAuthenticate, .authenticationInfo: !forwarding.dropsAuthentication
                case .other: !removes || !options.name(line.name, in: fields)
                default: !line.known.isHopByHop
                }
            }
            if !keepsLength { writer.framing(forwarding.framing) }
            writer.connection(forwarding.framing == .untilClose ? .close : forwarding.connection, upgrade: upgrade)
            for (name, value) in forwarding.extraFields { writer.extraField(name, value) }
            if let via = forwarding.via { writer.append(via.line) }
            writer.append("\r\n")
        }
    }

    /// Whether Content-Length may stand in a response without a body: not in 1xx and 204 (RFC 9110 §8.6), nor beside a
    /// Transfer-Encoding, nor when it is unsound.
    private var describesContent: Bool {
        guard !isInformational, status != 204, !fields.contains(.transferEncoding) else { return false }
        return fields.framing.contentLength != nil
    }
}
