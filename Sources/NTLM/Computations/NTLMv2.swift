// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The computations of NTLMv2, named as in MS-NLMP §3.3.2. LM and NTLMv1 are not implemented.
package enum NTLMv2 {
    package static let proofBytes = 16
    static let clientChallengeBytes = 8
    package static let keyBytes = 16

    /// NTOWFv2: HMAC-MD5 of the upper-cased user name and the unchanged domain, keyed with the MD4 of the password. It
    /// is equivalent to the password for an attacker. Throws `unusableCredential` if the password is not UTF-8.
    package static func ntowfv2(password: Secret, user: String, domain: String) throws(NTLMError) -> Secret {
        guard let text = UTF16Text.encode(utf8: password) else {
            throw NTLMError(.unusableCredential, "the password is not UTF-8 text")
        }
        var hash = text.bytes.withBytes { MD4.hash(UnsafeRawBufferPointer(rebasing: $0[..<text.count])) }
        let passwordHash = Secret(wiping: &hash)
        return hmacMD5(UTF16Text.uppercase(user) + UTF16Text.encode(domain), key: passwordHash)
    }

    /// The result of ComputeResponse: both responses and the session base key.
    package struct Response {
        /// NTProofStr (16 bytes) followed by `temp`.
        package let ntChallengeResponse: [UInt8]
        /// The LMv2 response, 24 bytes.
        let lmChallengeResponse: [UInt8]
        /// 16 bytes. In NTLMv2, it is also the key exchange key (§3.4.5.1).
        package let sessionBaseKey: Secret
    }

    /// Answers `serverChallenge`. `time` is a FILETIME, and `targetInfo` contains the serialised AV pairs including
    /// MsvAvEOL.
    static func computeResponse(
        responseKey: Secret, serverChallenge: [UInt8], clientChallenge: [UInt8], time: UInt64, targetInfo: [UInt8]
    ) -> Response {
        let zeros = [UInt8](repeating: 0, count: 4)
        var temp: [UInt8] = [1, 1, 0, 0] + zeros
        temp += time.littleEndianBytes + clientChallenge + zeros + targetInfo + zeros
        return response(
            to: serverChallenge, temp: temp, responseKey: responseKey, clientChallenge: clientChallenge)
    }

    /// The response that contains the given `temp`. An acceptor compares it with the client's response.
    package static func response(
        to serverChallenge: [UInt8], temp: [UInt8], responseKey: Secret, clientChallenge: [UInt8]
    ) -> Response {
        let proof = responseKey.withBytes { Digest.md5.hmac(serverChallenge + temp, key: $0) }
        let lmProof = responseKey.withBytes { Digest.md5.hmac(serverChallenge + clientChallenge, key: $0) }
        return Response(
            ntChallengeResponse: proof + temp, lmChallengeResponse: lmProof + clientChallenge,
            sessionBaseKey: hmacMD5(proof, key: responseKey))
    }

    /// MsvAvChannelBindings: the MD5 of a gss_channel_bindings_struct (RFC 2744 §3.11) with `applicationData` and no
    /// addresses. Its integers are little-endian, 4 bytes each. MS-NLMP §3.1.5.1.2.
    package static func channelBindingsHash(applicationData: [UInt8]) -> [UInt8] {
        let addresses = [UInt8](repeating: 0, count: 16)
        let length = UInt32(truncatingIfNeeded: applicationData.count).littleEndianBytes
        return Digest.md5.hash(addresses + length + applicationData)
    }

    static func hmacMD5(_ bytes: [UInt8], key: Secret) -> Secret {
        var code = key.withBytes { Digest.md5.hmac(bytes, key: $0) }
        return Secret(wiping: &code)
    }
}
