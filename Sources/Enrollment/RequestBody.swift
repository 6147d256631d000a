// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography

/// The body of a POST: the request in base64 on one line (RFC 8951 §3.1).
///
/// libcurl is told the length before the connection stands, and reads the bytes after: a linked request is made in
/// between, of the length that was told. ECDSA signatures differ in length, so that it may take several to get there.
final class RequestBody {
    /// Where libcurl reads; it does not move.
    let storage: UnsafeMutableBufferPointer<UInt8>
    /// The DER that is in the storage now.
    private(set) var request: [UInt8]
    /// The kind of link that the length was made for; nil when the request is not linked.
    let linkKind: ConnectionLink.Kind?
    private let source: ESTRequest

    /// One in about 10^12 requests would need more.
    private static let maximumTries = 100

    /// A request that is the same on any connection.
    init(_ source: ESTRequest) throws(CertificateError) {
        self.source = source
        linkKind = nil
        request = if let previous = source.previous { previous } else { try source.make(nil) }
        storage = Self.stored(Base64.encode(request))
    }

    /// Room for a request on a connection of that kind, with a link to none in it yet.
    init(_ source: ESTRequest, linkedBy kind: ConnectionLink.Kind) throws(CertificateError) {
        self.source = source
        linkKind = kind
        let blank = String(repeating: "A", count: kind.textLength)
        // The middle one of several lengths is a frequent one.
        var samples: [[UInt8]] = []
        for _ in 0..<(source.key.kind.hasVariableSignatures ? 5 : 1) { samples.append(try source.make(blank)) }
        samples.sort { $0.count < $1.count }
        request = samples[samples.count / 2]
        storage = Self.stored(Base64.encode(request))
    }

    deinit { storage.deallocate() }

    private static func stored(_ text: String) -> UnsafeMutableBufferPointer<UInt8> {
        let storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.utf8.count)
        _ = storage.initialize(from: text.utf8)
        return storage
    }

    /// Makes the request anew for this connection.
    func link(to link: ConnectionLink) throws(CertificateError) {
        for _ in 0..<Self.maximumTries {
            let made = try source.make(link.text)
            let text = Base64.encode(made)
            guard text.utf8.count == storage.count else { continue }
            _ = storage.update(fromContentsOf: Array(text.utf8))
            request = made
            return
        }
        throw CertificateError(.unavailable, "the key's signatures differ too much in length for a linked request")
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
