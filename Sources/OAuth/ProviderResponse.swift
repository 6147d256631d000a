// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// A complete HTTP response.
package struct ProviderResponse: Sendable {
    package let status: Int
    /// The value of the `Content-Type` field, if there is one.
    package let contentType: String?
    /// The seconds of the `Retry-After` field (RFC 9110 §10.2.3), if there is a valid one.
    package let retryAfter: Int64?
    /// That of the field `DPoP-Nonce` (RFC 9449 §8), if there is a valid one.
    package let nonce: String?
    /// The secrets of the request as it was sent, with its client's assertion. No message repeats them.
    let secrets: [Secret]
    /// May contain tokens. The caller wipes it afterwards.
    package let body: [UInt8]

    package init(
        status: Int, contentType: String?, retryAfter: Int64? = nil, nonce: String? = nil, to secrets: [Secret] = [],
        body: [UInt8]
    ) {
        self.nonce = nonce
        self.secrets = secrets
        self.status = status
        self.contentType = contentType
        self.retryAfter = retryAfter
        self.body = body
    }

    /// Whether the provider wants the request again, with its nonce in the proof (RFC 9449 §8).
    package var asksForNonce: Bool {
        (status == 400 || status == 401) && ProviderError(self)?.error == DPoPAuthenticator.nonceError
    }

    /// Type and subtype in lower case, without parameters.
    var mediaType: String? {
        contentType.map { String($0.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }).lowercased() }
    }

    /// `application/json` or a type with that suffix (RFC 6839 §3.1).
    var isJSON: Bool { mediaType == "application/json" || mediaType?.hasSuffix("+json") == true }

    /// For messages: `status 502, text/html`.
    var summary: String { "status \(status)" + (contentType.map { ", \(PrintableText.plain($0))" } ?? "") }
}
