// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// How the content takes part in a signature.
package enum SignedPayload: Equatable, Sendable {
    /// By this text, the last line of the canonical request: a hash that the client has computed, or
    /// `UNSIGNED-PAYLOAD`, or `STREAMING-UNSIGNED-PAYLOAD-TRAILER`. The content passes unchanged.
    case declared(String)
    /// By its hash, which the client has not sent: the whole content is needed before the head can be sent.
    case content
    /// By signatures in the content (the coding aws-chunked), which are replaced while it passes. `hasTrailers`: a
    /// signed section of fields follows the last chunk.
    case chunks(hasTrailers: Bool)

    private static let field = "x-amz-content-sha256"
    private static let unsigned = "UNSIGNED-PAYLOAD"
    private static let chunked = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
    private static let trailer = "-TRAILER"

    /// The hash of content that is passed in pieces.
    package static func hash(_ content: (_ update: (UnsafeRawBufferPointer) -> Void) -> Void) -> String {
        var digest = RunningDigest(.sha256)
        content { digest.update($0) }
        var digits = [UInt8](repeating: 0, count: 64)
        digits.withUnsafeMutableBytes { digest.finish(digits: $0) }
        return String(decoding: digits, as: UTF8.self)
    }

    /// The last line of the canonical request; nil for ``content``.
    var text: String? {
        switch self {
        case .declared(let text): text
        case .content: nil
        case .chunks(let hasTrailers): hasTrailers ? Self.chunked + Self.trailer : Self.chunked
        }
    }

    init(of request: SignableRequest, isPresigned: Bool, _ scope: CredentialScope) throws(AWSSignatureError) {
        var values = request.values(of: Self.field)
        if isPresigned, values.isEmpty {
            values = request.query.filter { $0.name.lowercased() == Self.field }.map(\.value)
        }
        guard let value = values.first.map({ String(decoding: $0, as: UTF8.self) }) else {
            self = isPresigned && scope.isS3 ? .declared(Self.unsigned) : .content
            return
        }
        guard values.count == 1 else { throw AWSSignatureError(.malformed, "the request has \(Self.field) twice") }
        switch value {
        case Self.unsigned, "STREAMING-UNSIGNED-PAYLOAD-TRAILER": self = .declared(value)
        case Self.chunked: self = .chunks(hasTrailers: false)
        case Self.chunked + Self.trailer: self = .chunks(hasTrailers: true)
        default:
            guard value.utf8.count == 64, Hex.decode(value) != nil else {
                throw AWSSignatureError(
                    .unsupported, "\(Self.field) is \(PrintableText.quoteASCII(value)), which cannot be signed again",
                    hint: "have the client send a hash, UNSIGNED-PAYLOAD or \(Self.chunked)")
            }
            self = .declared(value)
        }
    }
}
