// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

extension Certificate {
    /// Where the issuer publishes the certificate's status: OCSP responders (RFC 5280 §4.2.2.1), then revocation lists
    /// (RFC 5280 §4.2.1.13), at most ``RevocationPoint/limit`` of each kind.
    ///
    /// Only `http` URLs of printable ASCII. Ignores ldap; https, whose verification would need another status (RFC 5280
    /// §8); and distribution points that cover only some reasons or are issued by another CA.
    package var revocationPoints: [RevocationPoint] {
        Array(responderURLs.prefix(RevocationPoint.limit)).map { .responder(url: $0) }
            + Array(listURLs.prefix(RevocationPoint.limit)).map { .list(url: $0) }
    }

    private var responderURLs: [String] {
        guard let access = extensionValue(NID_info_access),
            let descriptions = try? DERItem.single(access.bytes, tag: DERItem.sequence).items()
        else { return [] }
        return descriptions.compactMap { description in
            guard let parts = try? description.items(), parts.count == 2,
                parts[0].dottedText == "1.3.6.1.5.5.7.48.1"
            else { return nil }
            return RevocationPoint.url(in: parts[1])
        }
    }

    private var listURLs: [String] {
        guard let value = extensionValue(NID_crl_distribution_points),
            let points = try? DERItem.single(value.bytes, tag: DERItem.sequence).items()
        else { return [] }
        // DistributionPoint: [0] distributionPoint, [1] reasons, [2] cRLIssuer; its name: [0] fullName.
        return points.flatMap { point -> [String] in
            guard let parts = try? point.items(), parts.map(\.tag) == [0xA0], let names = try? parts[0].items(),
                names.map(\.tag) == [0xA0], let uris = try? names[0].items()
            else { return [] }
            return uris.compactMap(RevocationPoint.url)
        }
    }
}

extension RevocationPoint {
    /// More are ignored: a second one is for the case that the first cannot be reached.
    static let limit = 2
    private static let longestURLBytes = 1024

    /// The http URL in a uniformResourceIdentifier.
    fileprivate static func url(in name: DERItem) -> String? {
        guard name.tag == 0x86, name.content.count <= longestURLBytes,
            name.content.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        let url = String(decoding: name.content, as: UTF8.self)
        return url.lowercased().hasPrefix("http://") ? url : nil
    }
}
