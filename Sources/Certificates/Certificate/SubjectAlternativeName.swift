// SPDX-License-Identifier: Apache-2.0

/// A subject alternative name (GeneralName, RFC 5280 §4.2.1.6).
package enum SubjectAlternativeName: Sendable, Hashable, CustomStringConvertible {
    case dns(String)
    case email(String)
    case uri(String)
    case ip(String)
    /// The user principal name of Windows domains, `user@domain`: otherName 1.3.6.1.4.1.311.20.2.3.
    case userPrincipalName(String)

    /// From `dns:…`, `email:…`, `uri:…`, `ip:…` or `upn:…`. Throws `malformed` for any other kind and for an invalid
    /// value.
    package init(_ text: String) throws(CertificateError) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else {
            throw CertificateError(
                .malformed,
                "\(text.debugDescription) is not an alternative name: expected dns:, email:, uri:, ip: or upn:")
        }
        let value = parts[1]
        switch parts[0].lowercased() {
        case "dns": self = .dns(value)
        case "email": self = .email(value)
        case "uri": self = .uri(value)
        case "ip": self = .ip(value)
        case "upn": self = .userPrincipalName(value)
        default:
            throw CertificateError(
                .malformed,
                "\(parts[0].debugDescription) is not a kind of alternative name: expected dns, email, uri, ip or upn")
        }
        guard isSound else {
            throw CertificateError(
                .malformed, "\(value.debugDescription) is not a valid value for \(parts[0].lowercased()):")
        }
    }

    /// In the form that the initialiser accepts.
    package var description: String {
        switch self {
        case .dns(let name): "dns:\(name)"
        case .email(let name): "email:\(name)"
        case .uri(let name): "uri:\(name)"
        case .ip(let name): "ip:\(name)"
        case .userPrincipalName(let name): "upn:\(name)"
        }
    }

    /// The GeneralName's DER. Throws `malformed` for a value that is invalid for its kind.
    func encoded() throws(CertificateError) -> [UInt8] {
        guard isSound else {
            throw CertificateError(.malformed, "\(description.debugDescription) is not an alternative name")
        }
        switch self {
        case .email(let name): return DEREncoding.tagged(1, Array(name.utf8))
        case .dns(let name): return DEREncoding.tagged(2, Array(name.lowercased().utf8))
        case .uri(let name): return DEREncoding.tagged(6, Array(name.utf8))
        case .ip(let name): return DEREncoding.tagged(7, IPAddress(text: name)?.bytes ?? [])
        case .userPrincipalName(let name):
            let value = DEREncoding.string(tag: DERItem.utf8String, name)
            return DEREncoding.tagged(
                0, constructed: true, Self.principalName + DEREncoding.tagged(0, constructed: true, value))
        }
    }

    /// 1.3.6.1.4.1.311.20.2.3.
    private static let principalName: [UInt8] = [
        0x06, 0x0A, 0x2B, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x14, 0x02, 0x03,
    ]
    private static let maximumBytes = 1024

    /// From a GeneralName in DER; nil for other kinds and for invalid text.
    init?(_ name: DERItem) {
        let text = String(validating: name.content, as: UTF8.self)
        switch (name.tag, text) {
        case (0x81, let text?): self = .email(text)
        case (0x82, let text?): self = .dns(text)
        case (0x86, let text?): self = .uri(text)
        case (0x87, _):
            guard let address = IPAddress(bytes: name.content) else { return nil }
            self = .ip(address.description)
        case (0xA0, _):
            guard let parts = try? name.items(), parts.count == 2, parts[0].encoding == Self.principalName,
                let value = try? parts[1].items().first,
                let text = String(validating: value.content, as: UTF8.self)
            else { return nil }
            self = .userPrincipalName(text)
        default: return nil
        }
        guard isSound else { return nil }
    }

    private var isSound: Bool {
        switch self {
        case .dns(let name): Self.isDomain(name)
        case .email(let name):
            name.split(separator: "@", omittingEmptySubsequences: false).count == 2 && !name.hasPrefix("@")
                && !name.hasSuffix("@") && Self.isPrintable(name, ascii: true)
        case .uri(let name):
            Self.isPrintable(name, ascii: true) && !name.hasPrefix(":") && name.contains(":") && !name.hasSuffix(":")
        case .ip(let name): IPAddress(text: name) != nil
        case .userPrincipalName(let name): Self.isPrintable(name, ascii: false)
        }
    }

    private static func isDomain(_ name: String) -> Bool {
        guard (1...253).contains(name.utf8.count) else { return false }
        var labels = name.split(separator: ".", omittingEmptySubsequences: false)
        if labels.first == "*" { labels.removeFirst() }
        return !labels.isEmpty
            && labels.allSatisfy { label in
                (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                    && label.utf8.allSatisfy { byte in
                        switch byte {
                        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
                        default: false
                        }
                    }
            }
    }

    /// Whether the text has no spaces or control characters.
    private static func isPrintable(_ name: String, ascii: Bool) -> Bool {
        (1...maximumBytes).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && (!ascii || $0 < 0x80) }
    }
}
