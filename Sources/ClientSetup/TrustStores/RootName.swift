// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHome

/// The name of a root in a trust store: `countersign-HOME-ROOT`.
///
/// HOME is a prefix of the SHA-256 of the home folder's path. It keeps two homes from removing each other's roots, and
/// identifies a home's earlier roots even after the home was deleted. ROOT is a prefix of the certificate's SHA-256. An
/// entry is removed only if its certificate matches, because a name alone proves nothing.
struct RootName: Equatable {
    let text: String
    private let homePart: Substring
    private let rootPart: Substring

    private static let prefix = "countersign-"
    /// Hexadecimal digits for 4 and 8 bytes.
    private static let (homeDigits, rootDigits) = (8, 16)

    init(of root: Certificate, in home: Home) {
        self.init(homePart: Self.homePart(home), rootPart: Hex.encode(root.sha256Fingerprint).prefix(Self.rootDigits))
    }

    private init(homePart: Substring, rootPart: Substring) {
        text = "\(Self.prefix)\(homePart)-\(rootPart)"
        self.homePart = homePart
        self.rootPart = rootPart
    }

    /// Returns nil if the name does not have this form.
    init?(parsing text: String) {
        guard text.hasPrefix(Self.prefix) else { return nil }
        let parts = text.dropFirst(Self.prefix.count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].count == Self.homeDigits, parts[1].count == Self.rootDigits,
            parts.allSatisfy({ $0.utf8.allSatisfy { Self.isDigit($0) } })
        else { return nil }
        self.init(homePart: parts[0], rootPart: parts[1])
    }

    /// Whether this is the name of `certificate` as a root of `home`.
    func names(_ certificate: Certificate, of home: Home) -> Bool {
        homePart == Self.homePart(home) && Hex.encode(certificate.sha256Fingerprint).hasPrefix(rootPart)
    }

    private static func homePart(_ home: Home) -> Substring {
        let path = HomeFile.resolved(home.path) ?? home.path
        return Hex.encode(Digest.sha256.hash(Array(path.utf8))).prefix(homeDigits)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
    }
}
