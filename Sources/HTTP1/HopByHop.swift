// SPDX-License-Identifier: Apache-2.0

extension FieldName {
    /// Whether the field applies to a single hop or frames the message on it, and so is written anew for the next hop
    /// (RFC 9110 §7.6.1). A Content-Length that is still correct may pass.
    var isHopByHop: Bool {
        switch self {
        case .connection, .contentLength, .keepAlive, .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
            .proxyConnection, .te, .trailer, .transferEncoding, .upgrade:
            true
        case .authenticationInfo, .authorization, .cookie, .countersignTrust, .date, .expect, .host, .maxForwards,
            .other, .setCookie, .via, .wwwAuthenticate:
            false
        }
    }
}

/// The line that the proxy appends to forwarded messages (RFC 9110 §7.6.3), formatted once.
package struct ViaField: Hashable, Sendable {
    let line: [UInt8]

    /// `value` is for example `1.1 countersign`. Control characters become spaces, octets beyond ASCII become `?`.
    package init(_ value: String) {
        line = HeadWriter.bytes(about: value.utf8.count + 8) { $0.field("Via", value) }
    }
}

/// The options of a message's Connection field.
struct ConnectionField: Hashable, Sendable {
    private(set) var closes = false
    private(set) var keepsAlive = false
    private(set) var upgrades = false
    private(set) var optionCount = 0
    /// An option names a field that ``ConnectionOptions`` removes.
    fileprivate(set) var removesFields = false

    /// Reads one line of the field, whose value is at `range`.
    mutating func read(_ bytes: RawSpan, at range: Range<Int>) {
        // The most common value, handled without parsing a list.
        if bytes.isName("keep-alive", at: range) {
            optionCount += 1
            keepsAlive = true
            return
        }
        bytes.forEachElement(of: range) { option in
            optionCount += 1
            if bytes.isName("close", at: option) {
                closes = true
            } else if bytes.isName("keep-alive", at: option) {
                keepsAlive = true
            } else if bytes.isName("upgrade", at: option) {
                upgrades = true
            } else if FieldName(in: bytes, at: option) == .other {
                removesFields = true
            }
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
            FieldName(in: span, at: option) == .other && !span.matches("close", at: option)
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
