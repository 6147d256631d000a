// SPDX-License-Identifier: Apache-2.0

/// The parts of a response that are written anew for the client.
package struct ResponseForwarding: Sendable {
    /// The framing of the forwarded body. `chunked` and `length` write their field, unless a received one already
    /// declares the length. `untilClose` forces `Connection: close`. With `none` the origin's valid Content-Length
    /// passes unchanged, as in a response to HEAD.
    package var framing: BodyFraming
    package var connection: ConnectionOption
    /// Appended after existing Via lines, unless it is nil.
    package var via: ViaField?
    /// Removes WWW-Authenticate and Authentication-Info, because the proxy has answered the challenge and not the
    /// client.
    package var dropsAuthentication = false
    /// Removes Access-Control-Allow-Origin: no page of another origin may read the response.
    package var dropsAllowOrigin = false
    /// Names must be tokens. Control characters in values become spaces, octets beyond ASCII become `?`.
    package var extraFields: [(String, String)]
    /// The values of further Set-Cookie lines. Control characters become spaces.
    package var setCookies: [ArraySlice<UInt8>] = []

    package init(
        framing: BodyFraming, connection: ConnectionOption = .keepAlive, via: ViaField? = nil,
        dropsAuthentication: Bool = false, dropsAllowOrigin: Bool = false, extraFields: [(String, String)] = [],
        setCookies: [ArraySlice<UInt8>] = []
    ) {
        self.framing = framing
        self.connection = connection
        self.via = via
        self.dropsAuthentication = dropsAuthentication
        self.dropsAllowOrigin = dropsAllowOrigin
        self.extraFields = extraFields
        self.setCookies = setCookies
    }
}

extension ResponseHead {
    /// The head for the client: HTTP/1.1, the origin's status and reason, the lines that are kept, unchanged and in
    /// order, then the new ones.
    package func forwarded(_ forwarding: ResponseForwarding) -> [UInt8] {
        HeadWriter.bytes(about: forwardedSize) { write(forwarding, into: $0) }
    }

    /// The approximate length of ``forwarded(_:)``.
    package var forwardedSize: Int { fields.bytes.count + 512 }

    /// Writes ``forwarded(_:)`` into `space` and returns its length. If that is more than `space` has, the contents of
    /// `space` are incomplete.
    package func write(_ forwarding: ResponseForwarding, into space: UnsafeMutableRawBufferPointer) -> Int {
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
            let removes = fields.connection.removesFields
            let options = ConnectionOptions.of(fields)
            let keepsLength = fields.declares(forwarding.framing)
            let passesLength = keepsLength || forwarding.framing == .none && describesContent
            writer.lines(of: fields, after: run) { line in
                switch line.known {
                case .contentLength: passesLength
                case .countersignTrust: false
                case .wwwAuthenticate, .authenticationInfo: !forwarding.dropsAuthentication
                case .proxyStatus: ProxyStatus.renamed(fields.value(of: line)) == nil
                case .other, .foldedFraming:
                    (!removes || !options.name(line.name, in: fields))
                        && !(forwarding.dropsAllowOrigin && fields.isAllowOrigin(line))
                default: !line.known.isHopByHop
                }
            }
            if !keepsLength { writer.framing(forwarding.framing) }
            writer.connection(forwarding.framing == .untilClose ? .close : forwarding.connection, upgrade: upgrade)
            if fields.contains(.proxyStatus) { writer.renamedStatus(fields) }
            for (name, value) in forwarding.extraFields { writer.extraField(name, value) }
            for value in forwarding.setCookies { writer.field("Set-Cookie", octets: value) }
            if let via = forwarding.via { writer.append(via.line) }
            writer.append("\r\n")
        }
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
