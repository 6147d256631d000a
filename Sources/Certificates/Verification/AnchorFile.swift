// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Synchronization

/// A PEM file of trust anchors. It is read at the first look-up of an issuer, and only certificates with the issuer's
/// name are decoded, because decoding takes OpenSSL a third of a millisecond per certificate.
///
/// The result is the same as with X509_load_cert_crl_file: `TRUSTED CERTIFICATE` keeps its purposes, and a file with
/// malformed PEM provides no anchors at all. So does a certificate that is malformed up to its subject; if it is
/// malformed later, only that certificate is ignored.
final class AnchorFile: Sendable {
    private let path: String
    private let anchors = Mutex<[Anchor]?>(nil)

    init(path: String) { self.path = path }

    /// The certificates with this subject, in the file's order. If the file cannot be read, returns none and tries
    /// again at the next call.
    func certificates(named subject: OpaquePointer) -> [Certificate] {
        anchors.withLock { anchors in
            if anchors == nil { anchors = Self.read(path) }
            return (anchors ?? []).filter { X509_NAME_cmp($0.subject, subject) == 0 }.compactMap { $0.certificate() }
        }
    }

    /// Nil if the file does not exist or cannot be read.
    private static func read(_ path: String) -> [Anchor]? {
        guard let text = content(of: path) else { return nil }
        if let certificates = PEMText.certificates(in: text) {
            let anchors = certificates.compactMap { Anchor(PEMBlock(label: PEM_STRING_X509, bytes: $0)) }
            return anchors.count == certificates.count ? anchors : []
        }
        guard let count = Int32(exactly: text.count) else { return [] }
        return text.withUnsafeBytes { text in
            guard let input = BIO_new_mem_buf(text.baseAddress, count) else { return nil }
            defer { BIO_free(input) }
            var anchors: [Anchor] = []
            ERR_clear_error()
            while let block = PEMBlock(from: input) {
                guard block.isCertificate else { continue }
                guard let anchor = Anchor(block) else { return [] }
                anchors.append(anchor)
            }
            return isEndOfPEM(ERR_peek_last_error()) ? anchors : []
        }
    }

    private static func content(of path: String) -> [UInt8]? {
        guard let input = BIO_new_file(path, "r") else { return nil }
        defer { BIO_free(input) }
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Int(BIO_read(input, &chunk, Int32(chunk.count)))
            guard count > 0 else { return count == 0 ? content : nil }
            content += chunk.prefix(count)
        }
    }
}

/// A certificate with only its subject decoded.
///
/// Unchecked because of the pointer: the X509_NAME is not modified after its creation.
private final class Anchor: @unchecked Sendable {
    let subject: OpaquePointer
    private let block: PEMBlock

    /// Nil if the block is not a certificate.
    init?(_ block: PEMBlock) {
        if let subject = Self.subject(in: block) {
            self.subject = subject
        } else {
            guard let certificate = block.certificate(),
                let subject = certificate.withX509({ X509_NAME_dup(X509_get_subject_name($0)) })
            else { return nil }
            self.subject = subject
        }
        self.block = block
    }

    deinit { X509_NAME_free(subject) }

    func certificate() -> Certificate? { block.certificate() }

    /// The subject of a plain certificate (RFC 5280 §4.1) in DER, or nil.
    private static func subject(in block: PEMBlock) -> OpaquePointer? {
        guard !block.hasPurposes, let whole = try? DERItem.single(block.bytes, tag: DERItem.sequence),
            let parts = try? whole.items(), parts.count == 3, parts[0].tag == DERItem.sequence,
            let fields = try? parts[0].items()
        else { return nil }
        // The version, tagged 0, is optional.
        let index = fields.first?.tag == 0xA0 ? 5 : 4
        guard fields.indices.contains(index) else { return nil }
        let name = fields[index].encoding
        return name.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_X509_NAME(nil, &position, buffer.count)
        }
    }
}

/// A block that OpenSSL has read from a PEM text.
private struct PEMBlock: Sendable {
    let label: String
    let bytes: [UInt8]

    init(label: String, bytes: [UInt8]) {
        self.label = label
        self.bytes = bytes
    }

    /// Nil at the end and for malformed text; OpenSSL's error queue says which.
    init?(from input: OpaquePointer) {
        var label: UnsafeMutablePointer<CChar>?
        var header: UnsafeMutablePointer<CChar>?
        var bytes: UnsafeMutablePointer<UInt8>?
        var count = 0
        guard PEM_read_bio(input, &label, &header, &bytes, &count) == 1, let label, let header, let bytes else {
            return nil
        }
        defer {
            for pointer in [
                UnsafeMutableRawPointer(label), UnsafeMutableRawPointer(header), UnsafeMutableRawPointer(bytes),
            ] { CRYPTO_free(pointer, nil, 0) }
        }
        // An encrypted block cannot be a trust anchor.
        self.label = header[0] == 0 ? String(cString: label) : ""
        self.bytes = Array(UnsafeBufferPointer(start: bytes, count: max(0, count)))
    }

    var isCertificate: Bool { [PEM_STRING_X509, PEM_STRING_X509_OLD].contains(label) || hasPurposes }

    /// Whether the certificate is followed by its trusted purposes.
    var hasPurposes: Bool { label == PEM_STRING_X509_TRUSTED }

    func certificate() -> Certificate? {
        let x509 = bytes.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return hasPurposes
                ? d2i_X509_AUX(nil, &position, buffer.count) : d2i_X509(nil, &position, buffer.count)
        }
        guard let x509 else { return nil }
        defer { X509_free(x509) }
        return Certificate(retaining: x509)
    }
}
