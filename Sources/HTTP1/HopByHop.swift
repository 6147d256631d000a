// SPDX-License-Identifier: Apache-2.0

extension FieldName {
    /// Whether the field means one hop only, or frames the message on it, and so is made anew for the next (RFC 9110
    /// §7.6.1). A Content-Length that is right already may pass.
    var isHopByHop: Bool {
        switch self {
        case .connection, .contentLength, .keepAlive, .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
            .proxyConnection, .te, .trailer, .transferEncoding, .upgrade:
            true
        case .authenticationInfo, .authorization, .cookie, .countersignTrust, .date, .expect, .host, .maxForwards,
            .other,
            .setCookie, .via, .wwwAuthenticate:
            false
        }
    }
}

/// The line that a proxy appends to what it forwards (RFC 9110 §7.6.3), made once.
package struct ViaField: Hashable, Sendable {
    let line: [UInt8]

    /// `value` as in `1.1 countersign`; control characters become spaces and octets beyond ASCII `?`.
    package init(_ value: String) {
        line = HeadWriter.bytes(about: value.utf8.count + 8) { $0.field("Via", value) }
    }
}

/// What a message's Connection field says, read once.
struct ConnectionField: Hashable, Sendable {
    private(set) var closes = false
    private(set) var keepsAlive = false
    private(set) var upgrades = false
    private(set) var optionCount = 0
    /// Names a field that ``ConnectionOptions`` removes.
    fileprivate(set) var removesFields = false

    /// Reads a line of the field, whose value stands at `range`.
    mutating func read(_ bytes: RawSpan, at range: Range<Int>) {
        // What most lines say, and no list.
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

/// The field names that a message's Connection field lists for removal. Those of `FieldName` are never among them: the
/// hop-by-hop ones go anyway, and Authorization, Host, Cookie and their like cannot be taken from a message by naming
/// them there.
struct ConnectionOptions {
    /// Of the head, where options stand in it that remove something.
    private let bytes: [UInt8]
    private let options: [Range<Int>]

    /// Names nothing.
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

    /// Whether the field at `name` in `section` is named.
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
