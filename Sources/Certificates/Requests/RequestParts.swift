// SPDX-License-Identifier: Apache-2.0

/// The digest for the signature of a certification request.
enum RequestDigest: Equatable, Sendable {
    case sha256
    case sha384
    case sha512

    /// From the object identifier of a digest or of a signature algorithm.
    init?(_ name: String) {
        switch name {
        case "2.16.840.1.101.3.4.2.1", "1.2.840.10045.4.3.2", "1.2.840.113549.1.1.11": self = .sha256
        case "2.16.840.1.101.3.4.2.2", "1.2.840.10045.4.3.3", "1.2.840.113549.1.1.12": self = .sha384
        case "2.16.840.1.101.3.4.2.3", "1.2.840.10045.4.3.4", "1.2.840.113549.1.1.13": self = .sha512
        default: return nil
        }
    }

    /// The default digest for a kind of key; nil for keys with a built-in digest.
    init?(for kind: KeyKind) {
        switch kind {
        case .ed25519, .ed448: return nil
        case .ec("P-384"): self = .sha384
        case .ec("P-521"): self = .sha512
        case .rsa, .rsaPSS, .ec, .dsa, .other: self = .sha256
        }
    }
}

/// An extension in a certification request (RFC 2985 §5.4.2).
struct RequestedExtension: Equatable, Sendable {
    static let subjectAlternativeName = "2.5.29.17"
    static let keyUsage = "2.5.29.15"
    static let extendedKeyUsage = "2.5.29.37"
    /// The extensions that a request includes automatically if it has a value for them.
    static let ownNames: Set<String> = [subjectAlternativeName, keyUsage, extendedKeyUsage]

    /// The dotted object identifier.
    let name: String
    private let identifier: [UInt8]
    let isCritical: Bool
    /// Nil for a template whose value the client fills in (RFC 9908 §3.4).
    let value: [UInt8]?

    var isWhole: Bool { value != nil }

    /// Parses an Extension, or an ExtensionTemplate, whose value is optional.
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
        guard parts.isEmpty else { throw CertificateError(.malformed, "extra values in an extension") }
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

    /// GeneralNames in DER. The extension is critical if the subject is empty (RFC 5280 §4.2.1.6).
    static func alternativeNames(_ names: [[UInt8]], isCritical: Bool) -> RequestedExtension {
        RequestedExtension(name: subjectAlternativeName, isCritical: isCritical, value: DEREncoding.sequence(names))
    }

    /// The Extension's DER.
    var encoding: [UInt8] {
        DEREncoding.sequence(
            [identifier] + (isCritical ? [DEREncoding.isTrue] : []) + [DEREncoding.octets(value ?? [])])
    }
}

/// A subject whose parts without a value the client fills in (RFC 9908 §3.4).
struct SubjectTemplate: Equatable, Sendable {
    /// The attributes of each part: the type, and the value if there is one.
    private let parts: [[[DERItem]]]

    init(_ name: DERItem) throws(CertificateError) {
        var parts: [[[DERItem]]] = []
        for part in try name.items() {
            var attributes: [[DERItem]] = []
            for attribute in try part.expecting(DERItem.set).items() {
                let pair = try attribute.expecting(DERItem.sequence).items()
                guard (1...2).contains(pair.count), pair[0].dottedText != nil else {
                    throw CertificateError(.malformed, "a part of a subject template that is not an attribute")
                }
                attributes.append(pair)
            }
            parts.append(attributes)
        }
        self.parts = parts
    }

    /// The template with missing values from `name`. Omits attributes that have a value in neither.
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
