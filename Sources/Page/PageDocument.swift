// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The page: one file with its style and its script, both of which the Content-Security-Policy names by their digests.
struct PageDocument: Sendable {
    let bytes: [UInt8]
    private let policy: String

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        policy = Self.contentSecurityPolicy(of: bytes)
    }

    var response: PageResponse {
        var response = PageResponse(200, "text/html; charset=utf-8", bytes)
        response.fields = [("Content-Security-Policy", policy)]
        return response
    }

    /// Permits the one style and the one script of a page, and requests to where it comes from.
    static func contentSecurityPolicy(of page: [UInt8]) -> String {
        let style = digest(of: "style", in: page)
        let script = digest(of: "script", in: page)
        return "default-src 'none'; style-src \(style); script-src \(script); connect-src 'self'; img-src data:; "
            + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    }

    /// The source expression of the content of the page's only element of that name; `'none'` without one.
    private static func digest(of element: String, in page: [UInt8]) -> String {
        guard let start = page.firstRange(of: Array("<\(element)>".utf8)),
            let end = page[start.upperBound...].firstRange(of: Array("</\(element)>".utf8))
        else { return "'none'" }
        let digest = Digest.sha256.hash(Array(page[start.upperBound..<end.lowerBound]))
        return "'sha256-\(Base64.encode(digest))'"
    }
}
