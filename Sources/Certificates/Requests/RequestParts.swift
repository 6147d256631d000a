// SPDX-License-Identifier: Apache-2.0

/// The digest that a certification request is signed with.
enum RequestDigest: Equatable, Sendable {
    case sha256
    case sha384
    case sha512

    /// From a digest's object identifier, or that of a signature with it.
    init?(_ name: String) {
        switch name {
        case "2.16.840.1.101.3.4.2.1", "1.2.840.10045.4.3.2", "1.2.840.113549.1.1.11": self = .sha256
        case "2.16.840.1.101.3.4.2.2", "1.2.840.10045.4.3.3", "1.2.840.113549.1.1.12": self = .sha384
        case "2.16.840.1.101.3.4.2.3", "1.2.840.10045.4.3.4", "1.2.840.113549.1.1.13": self = .sha512
        default: return nil
        }
    }

    /// The one that goes with a key, or nil where the key has its own.
    init?(for kind: KeyKind) {
        switch kind {
        case .ed25519, .ed448: return nil
        case .ec("P-384"): self = .sha384
        case .ec("P-521"): self = .sha512
        case .rsa, .rsaPSS, .ec, .dsa, .other: self = .sha256
        }
    }
}

/// An extension that a certification request asks for (RFC 2985 §5.4.2).
struct RequestedExtension: Equatable, Sendable {
    static let subjectAlternativeName = "2.5.29.17"
    static let keyUsage = "2.5.29.15"
    static let extendedKeyUsage = "2.5.29.37"
    /// Those that a request has of itself where it has a value for them.
    static let ownNames: Set<String> = [subjectAlternativeName, keyUsage, extendedKeyUsage]

    /// The object identifier with dots.
    let name: String
    private let identifier: [UInt8]
    let isCritical: Bool
    /// Nil for a template that leaves the value to the client (RFC 9908 §3.4).
    let value: [UInt8]?

    var isWhole: Bool { value != nil }

    /// Reads an Extension, or an ExtensionTemplate, which need not have a value.
    init(_ item: DERItem) throws(CertificateError) {
        var parts = try item.expecting(DERItem.sequence).items()[...]
        guard let first = parts.popFirst(), let name = first.dottedText else {
            throw CertificateError(.malformed, "an extension without an object identifier")
        }
        self.name = name
        identifier = first.encoding
        var isCritical = false
        if let flag = parts.first, flag.tag == DERItem.boolean {
            isCritical = flag.content != [0]
            parts.removeFirst()
        }
        self.isCritical = isCritical
        value = try parts.popFirst()?.expecting(DERItem.octetString).content
        guard parts.isEmpty else { throw CertificateError(.malformed, "more in an extension than belongs there") }
    }

    private init(name: String, isCritical: Bool, value: [UInt8]) {
        self.name = name
        identifier = DEREncoding.objectIdentifier(name) ?? []
        self.isCritical = isCritical
        self.value = value
    }

    /// digitalSignature, critical.
    static let signing = RequestedExtension(name: keyUsage, isCritical: true, value: DEREncoding.namedBits(0b1000_0000))

    /// id-kp-clientAuth, 1.3.6.1.5.5.7.3.2.
    static let clientAuthentication = RequestedExtension(
        name: extendedKeyUsage, isCritical: false,
        value: DEREncoding.sequence([[0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]]))

    /// GeneralNames in DER, critical where there is no subject (RFC 5280 §4.2.1.6).
    static func alternativeNames(_ names: [[UInt8]], isCritical: Bool) -> RequestedExtension {
        RequestedExtension(name: subjectAlternativeName, isCritical: isCritical, value: DEREncoding.sequence(names))
    }

    /// The Extension's DER.
    var encoding: [UInt8] {
        DEREncoding.sequence(
            [identifier] + (isCritical ? [DEREncoding.isTrue] : []) + [DEREncoding.octets(value ?? [])])
    }
}

/// A subject of which the client fills in what has no value (RFC 9908 §3.4).
struct SubjectTemplate: Equatable, Sendable {
    /// For each part its attributes: type, and value where there is one.
    private let parts: [[[DERItem]]]

    init(_ name: DERItem) throws(CertificateError) {
        var parts: [[[DERItem]]] = []
        for part in try name.items() {
            var attributes: [[DERItem]] = []
            for attribute in try part.expecting(DERItem.set).items() {
                let pair = try attribute.expecting(DERItem.sequence).items()
                guard (1...2).contains(pair.count), pair[0].dottedText != nil else {
                    throw CertificateError(.malformed, "a part of a subject template that is no attribute")
                }
                attributes.append(pair)
            }
            parts.append(attributes)
        }
        self.parts = parts
    }

    /// The template with the values that `name` has for it; an attribute that neither has is left out.
    func filled(from name: SubjectName) throws(CertificateError) -> SubjectName {
        var known: [[UInt8]: [UInt8]] = [:]
        for part in try DERItem.single(name.der, tag: DERItem.sequence).items() {
            for attribute in try part.items() {
                let pair = try attribute.items()
                if known[pair[0].encoding] == nil { known[pair[0].encoding] = pair[1].encoding }
            }
        }
        let filled = parts.map { part in
            part.compactMap { pair in
                let value = pair.count == 2 ? pair[1].encoding : known[pair[0].encoding]
                return value.map { DEREncoding.sequence([pair[0].encoding, $0]) }
            }
        }
        return SubjectName(parts: filled.filter { !$0.isEmpty })
    }
}
