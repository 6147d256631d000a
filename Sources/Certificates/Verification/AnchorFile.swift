// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Synchronization

/// A PEM file of anchors, read when a chain first asks for an issuer, of which only the certificates that bear the issuer's
/// name are decoded: that takes OpenSSL a third of a millisecond for each.
///
/// What is in the file counts as if X509_load_cert_crl_file had read all of it: `TRUSTED CERTIFICATE` keeps its purposes, and
/// where the PEM text is faulty nothing of the file counts. Of faults inside a certificate, those before its end of the
/// subject do the same; a later one leaves out that certificate alone.
final class AnchorFile: Sendable {
    private let path: String
    private let anchors = Mutex<[Anchor]?>(nil)

    init(path: String) { self.path = path }

    /// The certificates with this subject, in the file's order. A file that cannot be read has none, and is tried again.
    func certificates(named subject: OpaquePointer) -> [Certificate] {
        anchors.withLock { anchors in
            if anchors == nil { anchors = Self.read(path) }
            return (anchors ?? []).filter { X509_NAME_cmp($0.subject, subject) == 0 }.compactMap { $0.certificate() }
        }
    }

    /// Nil where there is no such file, or none that can be read.
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

/// A certificate that is not decoded yet, but for its subject's name.
///
/// Unchecked because of the pointer: the X509_NAME is not written after it was made.
private final class Anchor: @unchecked Sendable {
    let subject: OpaquePointer
    private let block: PEMBlock

    /// Nil where no certificate is.
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
        // The version, tagged 0, may be left out.
        let index = fields.first?.tag == 0xA0 ? 5 : 4
        guard fields.indices.contains(index) else { return nil }
        let name = fields[index].encoding
        return name.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_X509_NAME(nil, &position, buffer.count)
        }
    }
}

/// A block as OpenSSL reads it from a PEM text.
private struct PEMBlock: Sendable {
    let label: String
    let bytes: [UInt8]

    init(label: String, bytes: [UInt8]) {
        self.label = label
        self.bytes = bytes
    }

    /// Nil at the end, and for a faulty text: OpenSSL's error tells which.
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
        // What is encrypted is nobody's anchor.
        self.label = header[0] == 0 ? String(cString: label) : ""
        self.bytes = Array(UnsafeBufferPointer(start: bytes, count: max(0, count)))
    }

    var isCertificate: Bool { [PEM_STRING_X509, PEM_STRING_X509_OLD].contains(label) || hasPurposes }

    /// The certificate is followed by what it is trusted for.
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
