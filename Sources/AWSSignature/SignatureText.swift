// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The parameters of a signature as they are written, in either place.
enum SignatureText {
    case field([UInt8])
    case query([QueryParameter])

    struct Parts {
        let credential: String
        let signedFields: String
        var date: String?
        var expires: String?
    }

    init(_ value: [UInt8]) { self = .field(value) }

    init(_ query: [QueryParameter]) { self = .query(query) }

    var isQuery: Bool { if case .query = self { true } else { false } }

    func parts() throws(AWSSignatureError) -> Parts {
        switch self {
        case .field(let value): try Self.parts(ofField: String(decoding: value, as: UTF8.self))
        case .query(let query): try Self.parts(ofQuery: query)
        }
    }

    /// `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`, in any order. Some clients omit the spaces.
    private static func parts(ofField value: String) throws(AWSSignatureError) -> Parts {
        let halves = value.split(separator: " ", maxSplits: 1)
        try check(algorithm: halves.first.map(String.init) ?? "")
        var found: [String: String] = [:]
        for pair in halves.dropFirst().first?.split(separator: ",") ?? [] {
            let pair = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, found.updateValue(trimmed(pair[1]), forKey: String(pair[0])) == nil else {
                throw AWSSignatureError(.malformed, "Authorization is not a list of NAME=VALUE")
            }
        }
        guard let credential = found["Credential"], let signed = found["SignedHeaders"],
            let signature = found["Signature"], found.count == 3
        else {
            throw AWSSignatureError(.malformed, "Authorization does not have Credential, SignedHeaders and Signature")
        }
        try check(signature: signature)
        return Parts(credential: credential, signedFields: signed)
    }

    private static func parts(ofQuery query: [QueryParameter]) throws(AWSSignatureError) -> Parts {
        func value(_ name: String) throws(AWSSignatureError) -> String {
            let values = query.filter { $0.name == name }
            guard values.count == 1 else {
                throw AWSSignatureError(.malformed, "the query does not have \(name) exactly once")
            }
            return String(decoding: values[0].value, as: UTF8.self)
        }
        try check(algorithm: value("X-Amz-Algorithm"))
        try check(signature: value("X-Amz-Signature"))
        return Parts(
            credential: try value("X-Amz-Credential"), signedFields: try value("X-Amz-SignedHeaders"),
            date: try value("X-Amz-Date"), expires: try value("X-Amz-Expires"))
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while text.last == " " { text.removeLast() }
        return String(text)
    }

    private static func check(algorithm: String) throws(AWSSignatureError) {
        guard algorithm != ClientSignature.algorithm else { return }
        guard !algorithm.hasPrefix("AWS4-ECDSA") else {
            throw AWSSignatureError(
                .unsupported, "the client signs with SigV4A (\(PrintableText.quoteASCII(algorithm)))",
                hint: "have the client sign for one region, with AWS4-HMAC-SHA256")
        }
        throw AWSSignatureError(
            .unsupported, "the signature algorithm \(PrintableText.quoteASCII(algorithm)) is not known",
            hint: "have the client sign with AWS4-HMAC-SHA256")
    }

    private static func check(signature: String) throws(AWSSignatureError) {
        guard signature.utf8.count == 64, Hex.decode(signature) != nil else {
            throw AWSSignatureError(.malformed, "the signature is not 64 hexadecimal digits")
        }
    }
}

/// The session token of keys that expire, in the two places of a signature.
enum SessionTokenName {
    static let field = "x-amz-security-token"
    static let parameter = "X-Amz-Security-Token"
}
