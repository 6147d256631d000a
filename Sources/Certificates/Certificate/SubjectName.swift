// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A distinguished name (RFC 5280 §4.1.2.4), stored as DER.
package struct SubjectName: Sendable, Hashable {
    /// The Name's DER.
    package let der: [UInt8]

    /// The empty name.
    package static let empty = SubjectName(parts: [])

    /// Parses the form of RFC 4514, most specific part first, as in `CN=jdoe,O=ACME,C=DE`, or, if the text begins with
    /// `/`, OpenSSL's form, in the order of the DER, as in `/C=DE/O=ACME/CN=jdoe`. Throws `malformed` with the position
    /// of the error.
    package init(_ text: String) throws(CertificateError) {
        var reader = DistinguishedNameText(text)
        self.init(parts: try reader.parts())
    }

    /// Parses a Name in DER. Throws `malformed` for anything else.
    package init(der: [UInt8]) throws(CertificateError) {
        for part in try DERItem.single(der, tag: DERItem.sequence).items() {
            let values = try part.expecting(DERItem.set).items()
            guard !values.isEmpty else { throw CertificateError(.malformed, "an empty part of a name") }
            for value in values {
                let pair = try value.expecting(DERItem.sequence).items()
                guard pair.count == 2, pair[0].dottedText != nil else {
                    throw CertificateError(.malformed, "a part of a name that is not an attribute")
                }
            }
        }
        self.der = der
    }

    /// The certificate's subject, unchanged.
    package init(subjectOf certificate: Certificate) { der = certificate.subjectDER }

    /// The parts in the order of the DER; each is one or more attributes in DER.
    init(parts: [[[UInt8]]]) { der = DEREncoding.sequence(parts.map(DEREncoding.set)) }

    package var isEmpty: Bool { der == Self.empty.der }

    /// Calls `body` with the X509_NAME; nil if OpenSSL cannot read it.
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
    /// In the form of RFC 4514, most specific part first. Parsing the text gives the same name.
    package var description: String { withName { Certificate.text(of: $0) } ?? "" }
}
