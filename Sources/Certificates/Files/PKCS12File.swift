// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// An identity file in PKCS#12 (RFC 7292 §4), with modern algorithms or with RC2 and 3DES. An encrypted file must have
/// a MAC. The public-key privacy and integrity modes are not supported.
enum PKCS12File {
    static func read(_ bytes: [UInt8], password: Secret?) throws(CertificateError) -> IdentityContents {
        ERR_clear_error()
        guard let file = PKCS12(bytes, library: nil) else { throw .openSSL(.malformed, "not PKCS#12") }
        guard !file.hasCostlyMAC, !PKCS12Cost.isExcessive(bytes) else {
            throw CertificateError(
                .unsupported,
                "the file's password is to be hashed more than \(PKCS12Cost.largestCount) times, which takes too long")
        }
        let passphrase = try passphrase(for: file, password: password)
        if let contents = try file.contents(passphrase) { return contents }
        let reasons = OpenSSLErrors.drain()
        if let legacy = LegacyProviderContext(), let again = PKCS12(bytes, library: legacy.context),
            let contents = try again.contents(passphrase)
        {
            return contents
        }
        ERR_clear_error()
        let what = file.hasMAC ? "the file's encryption" : "encryption without a MAC"
        throw CertificateError(.unsupported, "\(what) is not supported: \(reasons.joined(separator: "; "))")
    }

    /// The form of the password that matches the file's MAC: without a password, implementations use either none or an
    /// empty one.
    private static func passphrase(for file: PKCS12, password: Secret?) throws(CertificateError) -> Passphrase {
        guard file.hasMAC else { return Passphrase(nil) }
        let offered = password.map { [Passphrase($0)] } ?? [Passphrase(nil), Passphrase(Secret([]))]
        defer { ERR_clear_error() }
        for passphrase in offered where file.isAuthentic(passphrase) { return passphrase }
        guard password != nil else { throw CertificateError(.passwordNeeded, "the file is encrypted") }
        throw CertificateError(.wrongPassword, "the password does not open the file, or the file was altered")
    }
}

/// Owns one PKCS12 structure of OpenSSL.
private final class PKCS12 {
    private let file: OpaquePointer

    /// Nil if the bytes are not exactly one PFX.
    init?(_ bytes: [UInt8], library: OpaquePointer?) {
        var file = PKCS12_init_ex(NID_pkcs7_data, library, nil)
        let isWhole = bytes.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            guard d2i_PKCS12(&file, &position, buffer.count) != nil else { return false }
            return position == buffer.baseAddress.map { $0 + buffer.count }
        }
        guard isWhole, let file else {
            PKCS12_free(file)
            return nil
        }
        self.file = file
    }

    deinit { PKCS12_free(file) }

    var hasMAC: Bool { PKCS12_mac_present(file) == 1 }

    /// Whether checking the MAC would take too long.
    var hasCostlyMAC: Bool {
        guard hasMAC else { return false }
        var count: UnsafePointer<ASN1_INTEGER>?
        PKCS12_get0_mac(nil, nil, nil, &count, file)
        // Nil means once, and a number that does not fit is negative.
        guard let count else { return false }
        return !(0...PKCS12Cost.largestCount).contains(ASN1_INTEGER_get(count))
    }

    func isAuthentic(_ passphrase: Passphrase) -> Bool {
        passphrase.withText { text, length in PKCS12_verify_mac(file, text, length) == 1 }
    }

    /// Copies of the file's contents; nil if it cannot be decrypted. Throws `noKey` if it contains no key.
    func contents(_ passphrase: Passphrase) throws(CertificateError) -> IdentityContents? {
        var key: OpaquePointer?
        var leaf: OpaquePointer?
        var others: OpaquePointer?
        let parsed = passphrase.withText { text, _ in PKCS12_parse(file, text, &key, &leaf, &others) }
        defer {
            EVP_PKEY_free(key)
            X509_free(leaf)
            OPENSSL_sk_pop_free(others) { $0.map { X509_free(OpaquePointer($0)) } }
        }
        guard parsed == 1 else { return nil }
        var found = [leaf].compactMap(\.self)
        for index in 0..<max(0, OPENSSL_sk_num(others)) {
            if let other = OPENSSL_sk_value(others, index) { found.append(OpaquePointer(other)) }
        }
        guard let key else { throw CertificateError(.noKey, "no private key in the file") }
        var certificates: [Certificate] = []
        for x509 in found { certificates.append(try Certificate(der: derBytes { i2d_X509(x509, $0) })) }
        return IdentityContents(certificates: certificates, key: try PrivateKey.copy(of: key))
    }
}

/// How often a password is hashed (RFC 8018 §4.2). The file determines the number, and OpenSSL accepts any.
enum PKCS12Cost {
    /// Some seconds.
    static let largestCount = 10_000_000

    /// Whether parameters of an encryption have a larger count: a SEQUENCE that begins with the salt, an OCTET STRING,
    /// and the count, an INTEGER. Looked for in all bytes, because the parameters are at several depths. Does not see
    /// those that are themselves encrypted.
    static func isExcessive(_ bytes: [UInt8]) -> Bool {
        bytes.indices.contains { start in
            guard bytes[start] == DERItem.sequence, let salt = header(in: bytes, at: start, of: DERItem.sequence),
                let count = header(in: bytes, at: salt.start, of: DERItem.octetString)?.end,
                let number = header(in: bytes, at: count, of: DERItem.integer), number.end <= salt.end
            else { return false }
            let digits = bytes[number.start..<number.end].drop { $0 == 0 }
            return digits.count > 4 || digits.reduce(0) { $0 << 8 | Int($1) } > largestCount
        }
    }

    /// The start and the end of the content of the value at `position`; nil if it is of another type, or longer than
    /// 255 bytes.
    private static func header(in bytes: [UInt8], at position: Int, of tag: UInt8) -> (start: Int, end: Int)? {
        guard position + 2 < bytes.count, bytes[position] == tag else { return nil }
        let isLong = bytes[position + 1] == 0x81
        guard isLong || bytes[position + 1] < 0x80 else { return nil }
        let start = position + (isLong ? 3 : 2)
        let end = start + Int(bytes[start - 1])
        return end <= bytes.count ? (start, end) : nil
    }
}

/// A password for OpenSSL's C functions: nil, or zero-terminated.
private struct Passphrase {
    private let text: Secret?

    init(_ password: Secret?) {
        text = password.map { password in
            Secret(count: password.count + 1) { room in password.withBytes { room.copyMemory(from: $0) } }
        }
    }

    func withText<Result>(_ body: (UnsafePointer<CChar>?, Int32) -> Result) -> Result {
        guard let text else { return body(nil, 0) }
        return text.withBytes { body($0.assumingMemoryBound(to: CChar.self).baseAddress, Int32(text.count - 1)) }
    }
}
