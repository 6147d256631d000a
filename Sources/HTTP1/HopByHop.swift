// SPDX-License-Identifier: Apache-2.0

extension FieldName {
    /// Whether the field means one hop only, or frames the message on it, and so is made anew for the next (RFC 9110
    /// §7.6.1).
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

/// The field names that a message's Connection field lists for removal. Those of `FieldName` are never among them: the
/// hop-by-hop ones go anyway, and Authorization, Host, Cookie and their like cannot be taken from a message by naming
/// them there.
struct ConnectionOptions {
    private let fields: FieldLines
    private let options: [Range<Int>]

    init(of fields: FieldLines) {
        self.fields = fields
        let span = fields.bytes.span.bytes
        options = fields.elements(of: .connection).filter { option in
            FieldName(in: span, at: option) == .other && !span.matches("close", at: option)
        }
    }

    /// Whether the field at `name` in `section` is named.
    func name(_ name: Range<UInt32>, in section: FieldLines) -> Bool {
        guard !options.isEmpty else { return false }
        let name = Range<Int>(name)
        return options.contains { option in
            guard option.count == name.count else { return false }
            return zip(fields.bytes[option], section.bytes[name]).allSatisfy {
                Octet.lowercased($0) == Octet.lowercased($1)
            }
        }
    }
}
