// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A distinguished name (RFC 5280 §4.1.2.4), kept as its DER.
package struct SubjectName: Sendable, Hashable {
    /// The Name's DER.
    package let der: [UInt8]

    /// A name without any part.
    package static let empty = SubjectName(parts: [])

    /// Reads the text of RFC 4514, most specific part first, as in `CN=jdoe,O=ACME,C=DE`; or, when it begins with `/`, OpenSSL's,
    /// in the order of the DER, as in `/C=DE/O=ACME/CN=jdoe`. `malformed` names the character at which it is neither.
    package init(_ text: String) throws(CertificateError) {
        var reader = DistinguishedNameText(text)
        self.init(parts: try reader.parts())
    }

    /// Takes a Name's DER: `malformed` when it is none.
    package init(der: [UInt8]) throws(CertificateError) {
        for part in try DERItem.single(der, tag: DERItem.sequence).items() {
            let values = try part.expecting(DERItem.set).items()
            guard !values.isEmpty else { throw CertificateError(.malformed, "an empty part of a name") }
            for value in values {
                let pair = try value.expecting(DERItem.sequence).items()
                guard pair.count == 2, pair[0].dottedText != nil else {
                    throw CertificateError(.malformed, "a part of a name that is no attribute")
                }
            }
        }
        self.der = der
    }

    /// The certificate's subject, byte for byte.
    package init(subjectOf certificate: Certificate) { der = certificate.subjectDER }

    /// The parts in the order of the DER, each of one attribute or more in DER.
    init(parts: [[[UInt8]]]) { der = DEREncoding.sequence(parts.map(DEREncoding.set)) }

    package var isEmpty: Bool { der == Self.empty.der }

    /// The X509_NAME, for as long as `body` runs; nil where OpenSSL cannot read it.
    func withName<Result>(_ body: (OpaquePointer) -> Result) -> Result? {
        let name = der.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_X509_NAME(nil, &position, buffer.count)
        }
        guard let name else { return nil }
        defer { X509_NAME_free(name) }
        return body(name)
    }
}

extension SubjectName: CustomStringConvertible {
    /// As RFC 4514 has it, most specific part first; it is read back as the same name.
    package var description: String { withName { Certificate.text(of: $0) } ?? "" }
}
