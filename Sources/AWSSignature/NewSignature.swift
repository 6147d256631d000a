// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The signature of a request with the real keys, and what becomes of the request.
///
/// A field that it signs must be sent as the request had it. The fields that a proxy writes anew are not signed.
package struct NewSignature: Sendable {
    package enum Change: Sendable {
        /// `authorization` is the value of Authorization, and `sessionToken` that of X-Amz-Security-Token; nil: that
        /// field is not sent.
        case fields(authorization: String, sessionToken: Secret?)
        /// The target of a presigned request. Whoever reads it can use it until it expires, and it may have a session
        /// token, so it is to be overwritten after use.
        case target([UInt8])
    }

    package let change: Change
    /// The names of the client's fields that are not sent, whether a field of ``change`` takes their place or not.
    package let removedFields = ["Authorization", "X-Amz-Security-Token"]
    /// The names of the signed fields, in lower case.
    package let signedFields: [String]
    /// Signs the content, which passes through it; nil if the content passes unchanged. Each repetition of the request
    /// starts with a copy of this one.
    package let chunkSigner: ChunkSigner?
}

extension SigningKeys {
    /// The fields that a proxy removes or writes anew. A client may have signed them; AWS does not require it.
    private static let unsigned: Set<String> = [
        "authorization", "connection", "cookie", "expect", "keep-alive", "max-forwards", "proxy-authenticate",
        "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "via",
    ]

    /// Signs `request`, of which `client` is the client's signature. `contentHash` is that of
    /// ``SignedPayload/hash(_:)``, for a payload of ``SignedPayload/content``. `leavingOut` are further fields, in
    /// lower case, that the request loses or that are written anew.
    package func sign(
        _ request: SignableRequest, as client: ClientSignature, contentHash: String? = nil,
        leavingOut: Set<String> = []
    ) throws(AWSSignatureError) -> NewSignature {
        guard let payload = client.payload.text ?? contentHash else {
            throw AWSSignatureError(.malformed, "the hash of the content is not known")
        }
        let fields = try signedFields(of: request, client, leavingOut: leavingOut)
        let names = fields.map(\.name)
        let key = self.key(for: client.scope)
        let path = CanonicalRequest.path(request.path, client.scope)
        func signature(_ query: [UInt8]) -> String {
            let canonical = CanonicalRequest(
                method: request.method, path: path, query: query, fields: fields, payload: payload)
            return key.signature(ClientSignature.algorithm, client.timestamp, [canonical.hash])
        }
        let digits: String
        let change: NewSignature.Change
        switch client.place {
        case .field:
            digits = signature(CanonicalRequest.query(request.query))
            change = .fields(
                authorization: "\(ClientSignature.algorithm) Credential=\(accessKeyID)/\(client.scope.text), "
                    + "SignedHeaders=\(names.joined(separator: ";")), Signature=\(digits)",
                sessionToken: sessionToken)
        case .query:
            var target = presignedTarget(of: request, client.scope, signedFields: names.joined(separator: ";"))
            // Parsed again, so that what is signed is what is sent. Copies of the session token stay behind in memory:
            // without the secret it is of no use.
            var query = CanonicalRequest.query(QueryParameter.parse(target.dropFirst(request.path.count + 1)))
            digits = signature(query)
            query.wipe()
            target += "&X-Amz-Signature=\(digits)".utf8
            change = .target(target)
        }
        return NewSignature(
            change: change, signedFields: names, chunkSigner: chunkSigner(client, key, seed: digits))
    }

    /// The fields that the client has signed and that stay as they are, and that of the session token.
    private func signedFields(
        of request: SignableRequest, _ client: ClientSignature, leavingOut: Set<String>
    ) throws(AWSSignatureError) -> [CanonicalRequest.Field] {
        var fields: [CanonicalRequest.Field] = []
        for name in client.signedFields
        where !Self.unsigned.contains(name) && !leavingOut.contains(name) && name != SessionTokenName.field {
            let values = request.values(of: name)
            guard !values.isEmpty else {
                throw AWSSignatureError(
                    .malformed, "the client signs the field \(PrintableText.quoteASCII(name)), which it does not send")
            }
            fields.append((name, .plain(CanonicalRequest.value(values))))
        }
        if client.place == .field, let sessionToken {
            let place = fields.firstIndex { $0.name > SessionTokenName.field } ?? fields.endIndex
            fields.insert((SessionTokenName.field, .secret(sessionToken)), at: place)
        }
        return fields
    }

    /// The target without a signature: the client's parameters in their order, as it has written them, but for those
    /// of the keys.
    private func presignedTarget(
        of request: SignableRequest, _ scope: CredentialScope, signedFields: String
    ) -> [UInt8] {
        var target = Array(request.path)
        // Room for the token, so that no copy of it stays behind when the array grows.
        target.reserveCapacity(
            request.path.count + request.query.reduce(512) { $0 + $1.written.count + 1 }
                + 3 * (sessionToken?.count ?? 0) + signedFields.utf8.count * 3)
        func add(_ pair: some Collection<UInt8>) {
            target.append(target.count == request.path.count ? UInt8(ascii: "?") : UInt8(ascii: "&"))
            target += pair
        }
        func add(_ name: String, _ value: some Collection<UInt8>) {
            add("\(name)=".utf8)
            target += Octets.percentEncoded(value)
        }
        for parameter in request.query {
            switch parameter.name {
            case "X-Amz-Credential": add(parameter.name, "\(accessKeyID)/\(scope.text)".utf8)
            case "X-Amz-SignedHeaders": add(parameter.name, signedFields.utf8)
            case "X-Amz-Signature", SessionTokenName.parameter: break
            default: add(parameter.written)
            }
        }
        sessionToken?.withBytes { add(SessionTokenName.parameter, $0) }
        return target
    }

    private func chunkSigner(_ client: ClientSignature, _ key: SigningKey, seed: String) -> ChunkSigner? {
        guard case .chunks(let hasTrailers) = client.payload else { return nil }
        return ChunkSigner(key: key, timestamp: client.timestamp, seed: seed, hasTrailers: hasTrailers)
    }
}
