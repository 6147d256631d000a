// SPDX-License-Identifier: Apache-2.0

import CountersignAWSSignature
import CountersignCryptography

/// Requests as a client sends them: signed with keys that stand for others.
enum Sample {
    static let placeholder = "countersign"
    static let noSignature = String(repeating: "0", count: 64)

    static func keys(
        _ id: String, _ secret: String, token: String? = nil
    ) throws -> SigningKeys {
        try SigningKeys(
            accessKeyID: id, secret: Secret(utf8: secret), sessionToken: token.map { Secret(utf8: $0) })
    }

    /// `fields` are `Name:value`.
    static func request(
        _ method: String, _ target: String, host: String, _ fields: [String]
    ) -> SignableRequest {
        SignableRequest(
            method: method, target: Array(target.utf8), host: host,
            fields: fields.map { field in
                let halves = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                return SignableRequest.Field(String(halves[0]), Array(halves[1].utf8))
            })
    }

    static func authorization(_ scope: String, _ signed: String, signature: String = noSignature) -> String {
        "Authorization:AWS4-HMAC-SHA256 Credential=\(placeholder)/\(scope), SignedHeaders=\(signed), "
            + "Signature=\(signature)"
    }

    static func hash(_ content: String) -> String {
        SignedPayload.hash { update in Array(content.utf8).withUnsafeBytes { update($0) } }
    }
}

extension NewSignature {
    /// The signature in either place; empty without one.
    var digits: String {
        switch change {
        case .fields(let authorization, _): String(authorization.suffix(64))
        case .target(let target): String(String(decoding: target, as: UTF8.self).suffix(64))
        }
    }

    var authorization: String? { if case .fields(let authorization, _) = change { authorization } else { nil } }

    var target: String? {
        if case .target(let target) = change { String(decoding: target, as: UTF8.self) } else { nil }
    }

    var sessionToken: Secret? { if case .fields(_, let token) = change { token } else { nil } }
}
