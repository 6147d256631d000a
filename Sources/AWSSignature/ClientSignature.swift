// SPDX-License-Identifier: Apache-2.0

// Signature Version 4 of Amazon Web Services, for a proxy: a client signs its request with keys that stand for others,
// and the request is signed again with the real ones, so that the client never has them.
//
// - `ClientSignature` is what the client has sent: in the Authorization field, or in the query of a presigned URL.
// - `SigningKeys` are the real keys. Their `sign` makes the `NewSignature` of a `SignableRequest`.
// - `CanonicalRequest` is the form of the request that is signed.
// - `ChunkSigner` signs the chunks of a body in the coding aws-chunked, which are a chain that begins with the request.
//
// The rules are those of "AWS Signature Version 4 for API requests" (IAM User Guide) and, for the chunks and what
// differs in S3, of "Authenticating Requests (AWS Signature Version 4)" (S3 API Reference). Not supported: SigV4A, the
// signed messages of event streams, and the policies of S3's browser uploads, which are signed in the content.

/// A signature of a client. It is not verified: only its client knows the secret that made it, which stands for
/// nothing.
package struct ClientSignature: Equatable, Sendable {
    /// Where the client has written it.
    package enum Place: Equatable, Sendable {
        case field
        /// A presigned URL, which is valid for so many seconds.
        case query(expiresSeconds: Int64)
    }

    static let algorithm = "AWS4-HMAC-SHA256"
    /// The longest validity of a presigned URL that AWS accepts, in seconds.
    private static let maximumExpiry: Int64 = 604_800
    /// How far a request's time may be from the server's, in seconds.
    private static let toleratedSkew: Int64 = 900

    package let place: Place
    package let accessKeyID: String
    package let scope: CredentialScope
    package let timestamp: SignatureTimestamp
    /// In lower case, sorted, with `host` among them.
    package let signedFields: [String]
    package let payload: SignedPayload

    /// The signature of `request`; nil if the client has not signed it in this way.
    package init?(of request: SignableRequest) throws(AWSSignatureError) {
        let inField = request.values(of: "authorization").filter { $0.starts(with: "AWS4-".utf8) }
        let query = request.query
        let inQuery = query.filter { $0.name == "X-Amz-Algorithm" }
        guard let written = inField.first.map({ SignatureText($0) }) ?? inQuery.first.map({ _ in SignatureText(query) })
        else { return nil }
        guard inField.count + inQuery.count == 1, request.values(of: "authorization").count == inField.count else {
            throw AWSSignatureError(.malformed, "the request authenticates its client twice")
        }
        let parts = try written.parts()
        let credential = parts.credential.split(separator: "/", omittingEmptySubsequences: false)
        guard let id = credential.first, !id.isEmpty, let scope = CredentialScope(credential.dropFirst()) else {
            throw AWSSignatureError(.malformed, "the Credential is not ID/DATE/REGION/SERVICE/aws4_request")
        }
        accessKeyID = String(id)
        self.scope = scope
        signedFields = try Self.names(in: parts.signedFields)
        switch written {
        case .field:
            place = .field
            timestamp = try Self.timestamp(of: request)
        case .query:
            guard let seconds = parts.expires.flatMap(Int64.init), (1...Self.maximumExpiry).contains(seconds) else {
                throw AWSSignatureError(.malformed, "X-Amz-Expires is not between 1 and \(Self.maximumExpiry) seconds")
            }
            place = .query(expiresSeconds: seconds)
            guard let date = parts.date, let timestamp = SignatureTimestamp(date) else {
                throw AWSSignatureError(.malformed, "X-Amz-Date is not a time such as 20150830T123600Z")
            }
            self.timestamp = timestamp
        }
        guard timestamp.text.hasPrefix(scope.date) else {
            throw AWSSignatureError(.malformed, "the Credential is for another day than the request")
        }
        payload = try SignedPayload(of: request, isPresigned: written.isQuery, scope)
    }

    /// The access key ID in a value of Authorization, before the rest of the request is read; nil if that is not such a
    /// signature.
    package static func accessKeyID(inField value: some StringProtocol) -> String? {
        let parts = try? SignatureText(Array(value.utf8)).parts()
        return parts?.credential.split(separator: "/", omittingEmptySubsequences: false).first.map(String.init)
    }

    /// The names are unique, sorted and tokens, so that no two requests have one canonical form.
    private static func names(in text: String) throws(AWSSignatureError) -> [String] {
        let names = text.lowercased().split(separator: ";", omittingEmptySubsequences: false).map(String.init)
        guard names.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(Octets.isToken) }), Set(names).count == names.count
        else { throw AWSSignatureError(.malformed, "SignedHeaders is not a list of field names") }
        // Without it, another server could use the signature.
        guard names.contains("host") else {
            throw AWSSignatureError(.malformed, "SignedHeaders does not name host")
        }
        return names.sorted()
    }

    private static func timestamp(of request: SignableRequest) throws(AWSSignatureError) -> SignatureTimestamp {
        for name in ["x-amz-date", "date"] {
            let values = request.values(of: name)
            guard let value = values.first else { continue }
            guard values.count == 1, let timestamp = SignatureTimestamp(String(decoding: value, as: UTF8.self)) else {
                throw AWSSignatureError(.malformed, "\(name) is not a time such as 20150830T123600Z")
            }
            return timestamp
        }
        throw AWSSignatureError(.malformed, "the request is signed without a date")
    }

    /// Why AWS would refuse the request at `now`, in seconds since 1970; nil if it would not. A signature for later
    /// must not be made: it could be used when the keys' owner believes that they are in use no more.
    package func timeFault(at now: Int64) -> AWSSignatureError? {
        let age = now - timestamp.seconds
        let lifetime =
            switch place {
            case .field: Self.toleratedSkew
            case .query(let seconds): seconds
            }
        if age < -Self.toleratedSkew {
            return AWSSignatureError(.expired, "the request is signed for a time that is yet to come")
        }
        return age > lifetime ? AWSSignatureError(.expired, "the signature of the request has expired") : nil
    }
}
