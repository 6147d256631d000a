// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The canonical form of a request, whose SHA-256 is signed: method, path, query, fields, their names, payload.
struct CanonicalRequest {
    let method: String
    let path: [UInt8]
    /// Sorted pairs, without X-Amz-Signature. Percent-encoded.
    let query: [UInt8]
    /// In the order of their names.
    let fields: [Field]
    /// The last line.
    let payload: String

    typealias Field = (name: String, value: Value)

    enum Value {
        case plain([UInt8])
        case secret(Secret)
    }

    /// `names;of;fields`
    var signedFields: String { fields.map(\.name).joined(separator: ";") }

    /// The hash as hexadecimal digits. The text itself is never put together, because it may have the session token.
    var hash: String {
        SignedPayload.hash { update in
            func add(_ octets: [UInt8]) { octets.withUnsafeBytes { update($0) } }
            func add(_ text: String) { add(Array(text.utf8)) }
            add("\(method)\n")
            add(path)
            add("\n")
            add(query)
            add("\n")
            for (name, value) in fields {
                add("\(name):")
                switch value {
                case .plain(let octets): add(octets)
                case .secret(let secret): secret.withBytes { update($0) }
                }
                add("\n")
            }
            add("\n\(signedFields)\n\(payload)")
        }
    }

    // MARK: Parts

    /// S3 encodes the path once: each segment is decoded and encoded, so that an encoded slash stays one. For all
    /// others the path is normalised, and encoded once more than it was sent.
    static func path(_ path: ArraySlice<UInt8>, _ scope: CredentialScope) -> [UInt8] {
        guard scope.isS3 else { return Octets.percentEncoded(normalized(path), keepsSlashes: true) }
        guard !path.isEmpty else { return [UInt8(ascii: "/")] }
        let segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return Array(
            segments.map { Octets.percentEncoded(Octets.percentDecoded($0)) }.joined(separator: "/".utf8))
    }

    /// Without `.`, `..` and empty segments (RFC 3986 §5.2.4). Unlike there, a last `..` leaves no slash.
    private static func normalized(_ path: ArraySlice<UInt8>) -> [UInt8] {
        var segments: [ArraySlice<UInt8>] = []
        for segment in path.split(separator: UInt8(ascii: "/")) where !segment.elementsEqual(".".utf8) {
            if segment.elementsEqual("..".utf8) { _ = segments.popLast() } else { segments.append(segment) }
        }
        let endsInSlash = path.last == UInt8(ascii: "/") && !segments.isEmpty
        return Array("/".utf8) + segments.joined(separator: "/".utf8) + (endsInSlash ? "/" : "").utf8
    }

    /// `parameters` in the order of their encoded names, then of their values.
    static func query(_ parameters: [QueryParameter]) -> [UInt8] {
        parameters
            .map { (Octets.percentEncoded($0.nameOctets), Octets.percentEncoded($0.value)) }
            .sorted { left, right in
                left.0 == right.0
                    ? left.1.lexicographicallyPrecedes(right.1) : left.0.lexicographicallyPrecedes(right.0)
            }
            .reduce(into: []) { query, pair in
                if !query.isEmpty { query.append(UInt8(ascii: "&")) }
                query += pair.0 + [UInt8(ascii: "=")] + pair.1
            }
    }

    /// The values of all lines of a field, without white space around them and with one space for each run inside.
    static func value(_ lines: [[UInt8]]) -> [UInt8] {
        Array(
            lines.map { $0.split(whereSeparator: Octets.isSpace).joined(separator: " ".utf8) }.map(Array.init)
                .joined(separator: ",".utf8))
    }
}
