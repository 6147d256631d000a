// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// What a signature is for: `20150830/us-east-1/iam/aws4_request`.
package struct CredentialScope: Equatable, Sendable {
    static let end = "aws4_request"

    /// `20150830`
    package let date: String
    package let region: String
    package let service: String

    var text: String { "\(date)/\(region)/\(service)/\(Self.end)" }

    /// S3 encodes the path once, does not normalise it, and lets presigned requests have any content.
    var isS3: Bool { ["s3", "s3-object-lambda", "s3-outposts", "s3express"].contains(service) }

    /// Nil if `parts` are not date, region, service and `aws4_request`.
    init?(_ parts: some Collection<Substring>) {
        let parts = Array(parts)
        guard parts.count == 4, parts[3] == Self.end, parts[0].utf8.count == 8,
            parts[0].utf8.allSatisfy(Octets.isDigit),
            parts[1...2].allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(PercentEncoding.isUnreserved) })
        else { return nil }
        date = String(parts[0])
        region = String(parts[1])
        service = String(parts[2])
    }
}
