// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// The attributes that an EST server wants in certification requests: CsrAttrs (RFC 7030 §4.5.2), encoded as in RFC
/// 8951 §3.3, with the semantics and template of RFC 9908.
///
/// If there is a template, everything else is ignored (RFC 9908 §3.4).
package struct CSRAttributes: Sendable, Equatable {
    /// Whether the request has to be linked to its TLS connection by the challenge password (RFC 7030 §3.5).
    package private(set) var wantsLinking = false
    /// The kind of key for the request; nil leaves the choice to the client.
    package private(set) var keySpecification: KeySpecification?
    /// The dotted object identifiers of attributes that are requested but not supported.
    package private(set) var ignored: [String] = []
    /// The same with their names, or their numbers if OpenSSL does not know them.
    package var ignoredNames: [String] { ignored.map(Self.named) }
    /// The digest for the signature.
    private(set) var digest: RequestDigest?
    /// Extensions to copy into the request.
    private(set) var extensions: [RequestedExtension] = []
    /// Attributes to copy into the request.
    private(set) var attributes: [DERItem] = []
    /// The template of the subject. The client fills in parts without a value.
    private(set) var subject: SubjectTemplate?
    private var isTemplate = false
    /// An elliptic-curve key was requested without a curve, which another attribute may still name.
    private var isCurveOpen = false

    package static let maximumBytes = 64 << 10
    private static let maximumEntries = 128

    /// No attributes.
    package init() {}

    /// Parses CsrAttrs in DER; no bytes mean no attributes. Throws `malformed` for anything else.
    package init(der: [UInt8]) throws(CertificateError) {
        guard der.count <= Self.maximumBytes else {
            throw CertificateError(.malformed, "CSR attributes of \(der.count) bytes")
        }
        guard !der.isEmpty else { return }
        let entries = try Self.naming { () throws(CertificateError) in
            try DERItem.single(der, tag: DERItem.sequence).items()
        }
        guard entries.count <= Self.maximumEntries else {
            throw CertificateError(.malformed, "\(entries.count) CSR attributes, the limit is \(Self.maximumEntries)")
        }
        for entry in entries where !isTemplate {
            try Self.naming { () throws(CertificateError) in try take(entry) }
        }
    }

    private static func naming<Result>(
        _ body: () throws(CertificateError) -> Result
    ) throws(CertificateError) -> Result {
        do {
            return try body()
        } catch {
            throw CertificateError(error.code, "not CSR attributes: \(error.detail)")
        }
    }

    /// Such as `unstructuredName (1.2.840.113549.1.9.2)`.
    private static func named(_ identifier: String) -> String {
        let number = OBJ_txt2nid(identifier)
        guard number != NID_undef, let name = OBJ_nid2ln(number) else { return identifier }
        return "\(String(cString: name)) (\(identifier))"
    }

    private mutating func take(_ entry: DERItem) throws(CertificateError) {
        if entry.tag == DERItem.objectIdentifier { return try take(entry, values: [], whole: nil) }
        let parts = try entry.expecting(DERItem.sequence).items()
        guard parts.count == 2 else {
            throw CertificateError(.malformed, "an attribute of \(parts.count) parts instead of 2")
        }
        try take(parts[0], values: parts[1].expecting(DERItem.set).items(), whole: entry)
    }

    private mutating func take(_ type: DERItem, values: [DERItem], whole: DERItem?) throws(CertificateError) {
        guard let name = type.dottedText else { throw CertificateError(.malformed, "expected an object identifier") }
        if let asked = RequestDigest(name), values.isEmpty {
            digest = asked
            return
        }
        // Some servers name the curve on its own instead of as the value of ecPublicKey; libest does by default.
        if let curve = EllipticCurve.specification(name), values.isEmpty { return takeCurve(name, curve) }
        switch name {
        case AttributeName.challengePassword: wantsLinking = true
        case AttributeName.ecPublicKey: takeEllipticCurveKey(name, values.first)
        case AttributeName.rsaEncryption: takeKey(name, Self.rsaSpecification(values.first))
        case AttributeName.extensionRequest: try takeExtensions(values)
        case AttributeName.extensionRequestTemplate where !values.isEmpty: try takeExtensions(values)
        case AttributeName.template where !values.isEmpty: try takeTemplate(values)
        // A request includes these anyway if it has a value for them.
        case RequestedExtension.subjectAlternativeName, RequestedExtension.keyUsage,
            RequestedExtension.extendedKeyUsage:
            break
        default:
            if let whole, !values.isEmpty { attributes.append(whole) } else { ignored.append(name) }
        }
    }

    private mutating func takeKey(_ name: String, _ specification: KeySpecification?) {
        if let specification, keySpecification == nil { keySpecification = specification } else { ignored.append(name) }
    }

    private mutating func takeEllipticCurveKey(_ name: String, _ curve: DERItem?) {
        guard curve == nil else { return takeKey(name, EllipticCurve.specification(curve)) }
        if keySpecification == nil { isCurveOpen = true }
        if keySpecification?.isEllipticCurve != true { takeKey(name, .ecP256) }
    }

    private mutating func takeCurve(_ name: String, _ specification: KeySpecification) {
        if isCurveOpen { keySpecification = nil }
        isCurveOpen = false
        takeKey(name, specification)
    }

    private static func rsaSpecification(_ size: DERItem?) -> KeySpecification? {
        guard let size else { return .rsa2048 }
        guard size.tag == DERItem.integer, size.content.count <= 4 else { return nil }
        return KeySpecification(.rsa(bits: size.content.reduce(0) { $0 << 8 | Int($1) }))
    }

    private mutating func takeExtensions(_ values: [DERItem]) throws(CertificateError) {
        for value in values {
            // The example in RFC 7030 has object identifiers instead of extensions (RFC 9908 §3.2).
            guard value.tag == DERItem.sequence else {
                ignored.append(value.dottedText ?? "tag \(value.tag)")
                continue
            }
            for item in try value.items() {
                let asked = try RequestedExtension(item)
                if asked.isWhole {
                    extensions.removeAll { $0.name == asked.name }
                    extensions.append(asked)
                } else if !RequestedExtension.ownNames.contains(asked.name) {
                    ignored.append(asked.name)
                }
            }
        }
    }

    // MARK: Template (RFC 9908 §3.4)

    private mutating func takeTemplate(_ values: [DERItem]) throws(CertificateError) {
        guard values.count == 1 else { throw CertificateError(.malformed, "\(values.count) request templates") }
        guard !isTemplate else { throw CertificateError(.malformed, "a request template inside another") }
        var parts = try values[0].expecting(DERItem.sequence).items()[...]
        guard try parts.popFirst()?.expecting(DERItem.integer).content == [0] else {
            throw CertificateError(.malformed, "a request template whose version is not 1")
        }
        var found = CSRAttributes()
        if let name = parts.first, name.tag == DERItem.sequence {
            found.subject = try SubjectTemplate(name)
            parts.removeFirst()
        }
        if let key = parts.first, key.tag == 0xA0 {
            try found.takeKeyTemplate(key)
            parts.removeFirst()
        }
        if let attributes = parts.first, attributes.tag == 0xA1 {
            found.isTemplate = true
            for attribute in try attributes.items() { try found.take(attribute) }
            parts.removeFirst()
        }
        guard parts.isEmpty else { throw CertificateError(.malformed, "extra values in a request template") }
        self = found
        isTemplate = true
    }

    private mutating func takeKeyTemplate(_ key: DERItem) throws(CertificateError) {
        let algorithm = try key.items().first?.expecting(DERItem.sequence).items() ?? []
        guard let name = algorithm.first?.dottedText else {
            throw CertificateError(.malformed, "a request template's key without an algorithm")
        }
        switch name {
        case AttributeName.ecPublicKey: takeKey(name, EllipticCurve.specification(algorithm.dropFirst().first))
        case AttributeName.rsaEncryption:
            takeKey(name, try Self.modulusSpecification(try key.items().dropFirst().first))
        default: ignored.append(name)
        }
    }

    /// From the bits of a placeholder key. Only their number matters.
    private static func modulusSpecification(_ publicKey: DERItem?) throws(CertificateError) -> KeySpecification? {
        guard let publicKey else { return .rsa2048 }
        let numbers = try DERItem.single(Array(publicKey.content.dropFirst()), tag: DERItem.sequence).items()
        let modulus = numbers.first?.content.drop { $0 == 0 } ?? []
        return KeySpecification(.rsa(bits: modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)))
    }
}

/// Object identifiers of attributes and algorithms.
private enum AttributeName {
    static let challengePassword = "1.2.840.113549.1.9.7"
    static let extensionRequest = "1.2.840.113549.1.9.14"
    static let template = "1.2.840.113549.1.9.16.2.61"
    static let extensionRequestTemplate = "1.2.840.113549.1.9.16.2.62"
    static let ecPublicKey = "1.2.840.10045.2.1"
    static let rsaEncryption = "1.2.840.113549.1.1.1"
}

extension KeySpecification {
    fileprivate var isEllipticCurve: Bool { if case .ec = kind { true } else { false } }
}

private enum EllipticCurve {
    /// P-256 if no curve is named.
    static func specification(_ curve: DERItem?) -> KeySpecification? {
        guard let curve else { return .ecP256 }
        return curve.dottedText.flatMap { specification($0) }
    }

    /// From the curve's object identifier.
    static func specification(_ name: String) -> KeySpecification? {
        switch name {
        case "1.2.840.10045.3.1.7": .ecP256
        case "1.3.132.0.34": .ecP384
        case "1.3.132.0.35": .ecP521
        default: nil
        }
    }
}
