// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The location of a key in a PKCS#11 token: a `pkcs11:` URI (RFC 7512) in canonical form.
///
/// `token`, `manufacturer`, `serial` and `model` name the token, `object` and `id` the object, and `module-path` a
/// module other than the system's. A PIN is an error, because a PIN is secret and a URI is not.
package struct TokenURI: Sendable, Hashable {
    /// Values, percent-decoded.
    private let attributes: [String: [UInt8]]
    /// The absolute path of the PKCS#11 module; nil for the system's.
    package let modulePath: String?

    private static let scheme = "pkcs11:"
    private static let tokenNames = ["token", "manufacturer", "serial", "model"]
    private static let objectNames = ["object", "id"]
    private static let maximumBytes = 2048

    package static func isURI(_ text: some StringProtocol) -> Bool { text.lowercased().hasPrefix(scheme) }

    /// Throws `malformed` for text that is not such a URI, `unsupported` for unknown attributes and for a PIN.
    /// `defaultModulePath` applies if the URI has no module.
    package init(_ text: String, defaultModulePath: String? = nil) throws(CertificateError) {
        guard Self.isURI(text), text.utf8.count <= Self.maximumBytes else {
            throw CertificateError(.malformed, "not a pkcs11: URI of at most \(Self.maximumBytes) bytes")
        }
        let parts = text.dropFirst(Self.scheme.count).split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var attributes: [String: [UInt8]] = [:]
        for (name, value) in try Self.pairs(parts[0], separator: ";") where name != "type" {
            guard (Self.tokenNames + Self.objectNames).contains(name) else {
                throw CertificateError(
                    .unsupported,
                    "\(name.debugDescription) in a pkcs11: URI is not supported: name the token and the object")
            }
            guard attributes.updateValue(value, forKey: name) == nil else {
                throw CertificateError(.malformed, "\(name.debugDescription) occurs twice in the pkcs11: URI")
            }
        }
        guard Self.objectNames.contains(where: { attributes[$0] != nil }) else {
            throw CertificateError(
                .malformed, "the pkcs11: URI has neither an object nor an id, so it does not name a key")
        }
        self.attributes = attributes
        modulePath = try Self.modulePath(parts.count == 2 ? parts[1] : "", default: defaultModulePath)
    }

    private static func modulePath(
        _ query: Substring, default defaultPath: String?
    ) throws(CertificateError) -> String? {
        var path = defaultPath
        for (name, value) in try pairs(query, separator: "&") {
            switch name {
            case "pin-value", "pin-source":
                throw CertificateError(
                    .unsupported,
                    "a pkcs11: URI must not contain a PIN: Countersign asks for the PIN and stores it in the vault")
            case "module-path": path = String(decoding: value, as: UTF8.self)
            default:
                throw CertificateError(
                    .unsupported, "\(name.debugDescription) in a pkcs11: URI is not supported, only module-path is")
            }
        }
        guard let path else { return nil }
        guard path.hasPrefix("/"), !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw CertificateError(.malformed, "the module-path \(path.debugDescription) is not an absolute path")
        }
        return path
    }

    /// The names and decoded values between the separators.
    private static func pairs(
        _ text: Substring, separator: Character
    ) throws(CertificateError) -> [(String, [UInt8])] {
        var pairs: [(String, [UInt8])] = []
        for part in text.split(separator: separator) {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let value = decoded(pair[1]), !value.isEmpty, !value.contains(0) || pair[0] == "id"
            else {
                // Quotes the name only, because the value may be a PIN.
                throw CertificateError(.malformed, "\(pair[0].debugDescription) in the pkcs11: URI has no valid value")
            }
            pairs.append((String(pair[0]), value))
        }
        return pairs
    }

    private static func decoded(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard rest.count >= 2, let pair = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)) else {
                    return nil
                }
                bytes += pair
                rest = rest.dropFirst(2)
            } else {
                guard byte > 0x20, byte != 0x7F else { return nil }
                bytes.append(byte)
            }
        }
        return bytes
    }

    /// The URI without the module, for the engine.
    var objectText: String {
        let pairs = (Self.tokenNames + Self.objectNames).compactMap { name in
            attributes[name].map { "\(name)=\(Self.encoded($0, everything: name == "id"))" }
        }
        return Self.scheme + pairs.joined(separator: ";")
    }

    private static func encoded(_ bytes: [UInt8], everything: Bool) -> String {
        bytes.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
                everything ? "%" + Hex.encode([byte]) : String(UnicodeScalar(byte))
            default: "%" + Hex.encode([byte])
            }
        }.joined()
    }
}

extension TokenURI: CustomStringConvertible {
    /// The URI in canonical form.
    package var description: String {
        let query = modulePath.map { path in
            "?module-path="
                + path.split(separator: "/", omittingEmptySubsequences: false)
                .map { Self.encoded(Array($0.utf8), everything: false) }.joined(separator: "/")
        }
        return objectText + (query ?? "")
    }
}
