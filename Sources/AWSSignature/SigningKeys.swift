// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The keys of an AWS account's user or role.
package struct SigningKeys: Sendable {
    /// Not secret: each signature names it.
    package let accessKeyID: String
    private let secret: Secret
    let sessionToken: Secret?

    /// `sessionToken` belongs to keys that expire; nil for those of a user.
    package init(accessKeyID: String, secret: Secret, sessionToken: Secret? = nil) throws(AWSSignatureError) {
        guard !accessKeyID.isEmpty, accessKeyID.utf8.allSatisfy(PercentEncoding.isUnreserved) else {
            throw AWSSignatureError(
                .keys, "the user name is not an access key ID", hint: "enrol the keys: user AKIA..., and the secret")
        }
        guard secret.count > 0 else { throw AWSSignatureError(.keys, "the secret access key is empty") }
        // It becomes a line of the canonical request and the value of a field.
        if let sessionToken, !sessionToken.withBytes({ $0.allSatisfy { (0x21...0x7E).contains($0) } && !$0.isEmpty }) {
            throw AWSSignatureError(.keys, "the session token has characters that a session token cannot have")
        }
        self.accessKeyID = accessKeyID
        self.secret = secret
        self.sessionToken = sessionToken
    }

    /// The signing key of a scope: the secret of all signatures of one day, region and service.
    func key(for scope: CredentialScope) -> SigningKey {
        var key = Secret(count: secret.count + 4) { output in
            output.copyBytes(from: "AWS4".utf8)
            secret.withBytes { UnsafeMutableRawBufferPointer(rebasing: output[4...]).copyMemory(from: $0) }
        }
        for part in [scope.date, scope.region, scope.service, CredentialScope.end] {
            var next = key.withBytes { Digest.sha256.hmac(Array(part.utf8), key: $0) }
            key = Secret(wiping: &next)
        }
        return SigningKey(scope: scope, key: key)
    }
}

/// Signs within one scope.
struct SigningKey: Sendable {
    let scope: CredentialScope
    fileprivate let key: Secret

    /// The signature, in hexadecimal digits, of a text with these lines. The second and third are the time and the
    /// scope.
    func signature(_ algorithm: String, _ timestamp: SignatureTimestamp, _ lines: [String]) -> String {
        let text = ([algorithm, timestamp.text, scope.text] + lines).joined(separator: "\n")
        return Hex.encode(key.withBytes { Digest.sha256.hmac(Array(text.utf8), key: $0) })
    }
}
