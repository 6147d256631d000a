// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography

/// The body of a POST: the request in base64 (RFC 8951 §3.1), in lines of 64 characters. libest reads it with OpenSSL's
/// filter for base64 in lines and rejects longer ones.
///
/// libcurl needs the length before it connects and reads the bytes afterwards. A linked request is created in between
/// and must have the announced length. Because ECDSA signatures vary in length, this can take several attempts.
final class RequestBody {
    /// The bytes that libcurl reads, at a fixed address.
    let storage: UnsafeMutableBufferPointer<UInt8>
    /// The request in DER whose base64 is in the storage.
    private(set) var request: [UInt8]
    /// The kind of link that the length is for; nil if the request is not linked.
    let linkKind: ConnectionLink.Kind?
    private let source: ESTRequest

    /// About one in 10^12 requests needs more.
    private static let maximumTries = 100

    /// A request that does not depend on the connection.
    init(_ source: ESTRequest) throws(CertificateError) {
        self.source = source
        linkKind = nil
        request = if let previous = source.previous { previous } else { try source.make(nil) }
        storage = Self.stored(Base64.encodeLines(request))
    }

    /// Storage for a request with a link of that kind, filled with a placeholder for the link.
    init(_ source: ESTRequest, linkedBy kind: ConnectionLink.Kind) throws(CertificateError) {
        self.source = source
        linkKind = kind
        let blank = String(repeating: "A", count: kind.textLength)
        // The median of several lengths is a frequent length.
        var samples: [[UInt8]] = []
        for _ in 0..<(source.key.kind.hasVariableSignatures ? 5 : 1) { samples.append(try source.make(blank)) }
        samples.sort { $0.count < $1.count }
        request = samples[samples.count / 2]
        storage = Self.stored(Base64.encodeLines(request))
    }

    deinit { storage.deallocate() }

    private static func stored(_ text: String) -> UnsafeMutableBufferPointer<UInt8> {
        let storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.utf8.count)
        _ = storage.initialize(from: text.utf8)
        return storage
    }

    /// Creates the request again, linked to this connection.
    func link(to link: ConnectionLink) throws(CertificateError) {
        for _ in 0..<Self.maximumTries {
            let made = try source.make(link.text)
            let text = Base64.encodeLines(made)
            guard text.utf8.count == storage.count else { continue }
            _ = storage.update(fromContentsOf: Array(text.utf8))
            request = made
            return
        }
        throw CertificateError(.unavailable, "the lengths of the key's signatures vary too much for a linked request")
    }
}

extension KeyKind {
    fileprivate var hasVariableSignatures: Bool {
        switch self {
        case .ec, .dsa, .other: true
        case .rsa, .rsaPSS, .ed25519, .ed448: false
        }
    }
}
