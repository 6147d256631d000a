// SPDX-License-Identifier: Apache-2.0

extension FieldName {
    /// Whether the field applies to a single hop or frames the message on it, and so is written anew for the next hop
    /// (RFC 9110 §7.6.1). A Content-Length that is still correct may pass.
    var isHopByHop: Bool {
        switch self {
        case .connection, .contentLength, .keepAlive, .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
            .proxyConnection, .te, .trailer, .transferEncoding, .upgrade:
            true
        case .authenticationInfo, .authorization, .cookie, .countersignTrust, .date, .expect, .foldedFraming, .host,
            .maxForwards, .other, .proxyStatus, .setCookie, .via, .wwwAuthenticate:
            false
        }
    }
}

/// The field names that a message's Connection field lists for removal, except those of `FieldName`: hop-by-hop fields
/// are removed anyway, and a peer must not be able to remove Authorization, Host, Cookie and the like.
struct ConnectionOptions {
    /// The bytes of the head; empty without such options.
    private let bytes: [UInt8]
    private let options: [Range<Int>]

    private init() {
        bytes = []
        options = []
    }

    private init(_ fields: FieldLines) {
        bytes = fields.bytes
        let span = fields.bytes.span.bytes
        options = fields.elements(of: .connection).filter { option in
            FieldName(in: span, at: option).isOther && !span.matches("close", at: option)
        }
    }

    static func of(_ fields: FieldLines) -> ConnectionOptions {
        fields.connection.removesFields ? ConnectionOptions(fields) : ConnectionOptions()
    }

    /// Whether the options name the field at `name` in `section`.
    func name(_ name: Range<UInt32>, in section: FieldLines) -> Bool {
        guard !options.isEmpty else { return false }
        let name = Range<Int>(name)
        return options.contains { option in
            guard option.count == name.count else { return false }
            return zip(bytes[option], section.bytes[name]).allSatisfy {
                Octet.lowercased($0) == Octet.lowercased($1)
            }
        }
    }
}

/// What decides which lines of a message pass, apart from their names: found once per message.
struct KeptFields {
    /// A received Content-Length still is correct.
    let keepsLength: Bool
    /// The message's Connection field names fields that the proxy does not know.
    let removes: Bool
    let options: ConnectionOptions

    @inline(__always)
    init(_ fields: FieldLines, declaring framing: BodyFraming) {
        keepsLength = fields.declares(framing)
        removes = fields.connection.removesFields
        options = ConnectionOptions.of(fields)
    }
}
