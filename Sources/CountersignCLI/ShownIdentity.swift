// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Countersign
import CountersignCryptography
import Glibc
import CountersignProxy
import CountersignVault

/// A client identity as `certificate list` and `certificate inspect` show it.
struct ShownIdentity: Encodable {
    let name: String
    let subject: String
    let issuer: String
    let serialNumber: String
    let notBefore: String
    let notAfter: String
    let daysLeft: Int64
    let isExpired: Bool
    let key: String
    /// The token's URI, when the key lies in one.
    let token: String?
    let hasPrivateKey: Bool
    let signature: String
    let alternativeNames: String?
    let keyUsage: String?
    let extendedKeyUsage: String?
    let isForClients: Bool
    /// The subjects of the certificates behind the leaf.
    let issuers: [String]
    let fingerprint: String
    /// The EST server that it is enrolled at, if it is.
    let server: String?
    /// The sites that are to see this identity and no other.
    let sites: [String]
    /// The sites that see whichever identity their server accepts.
    let sitesByIssuer: [String]

    private enum CodingKeys: String, CodingKey {
        case name, subject, issuer, notBefore, notAfter, daysLeft, key, token, signature, alternativeNames, keyUsage
        case extendedKeyUsage, issuers, fingerprint, server, sites, sitesByIssuer
        case serialNumber = "serial"
        case isExpired = "expired"
        case isForClients = "clientAuthentication"
        case hasPrivateKey = "privateKey"
    }

    /// `chain` is not empty.
    init(_ name: String, _ chain: [Certificate], of contents: VaultContents?, _ sites: IdentitySites) {
        let leaf = chain[0]
        let place = KeyPlace(of: name, leaf: leaf, in: contents)
        let now = Int64(time(nil))
        self.name = name
        subject = leaf.subject
        issuer = leaf.issuer
        serialNumber = leaf.serialNumberHex
        notBefore = Day.text(leaf.notBefore)
        notAfter = Day.text(leaf.notAfter)
        daysLeft = max(0, leaf.notAfter / Day.seconds - now / Day.seconds)
        isExpired = leaf.notAfter < now
        key = leaf.keyDescription
        token = place.tokenURI
        hasPrivateKey = place != .nowhere
        signature = leaf.signatureDescription
        alternativeNames = leaf.alternativeNamesText
        keyUsage = leaf.keyUsageText
        extendedKeyUsage = leaf.extendedKeyUsageText
        isForClients = leaf.allowsClientAuthentication && leaf.allowsDigitalSignature
        issuers = chain.dropFirst().map(\.subject)
        fingerprint = leaf.fingerprintText
        server = contents?.enrollments[name]?.server
        self.sites = sites.named(name)
        sitesByIssuer = sites.byIssuer
    }

    /// A line a field.
    var text: String {
        let usages = [keyUsage, extendedKeyUsage].compactMap(\.self)
        var rows = [
            ["name", name], ["subject", subject], ["issuer", issuer], ["serial", serialNumber],
            ["valid", "\(notBefore) to \(notAfter), \(remaining)"],
            ["key", "\(key), \(keyPlace)"], ["signature", signature], ["names", alternativeNames ?? "none"],
            ["usage", (usages.isEmpty ? "any" : usages.joined(separator: "; ")) + purpose],
            ["chain", issuers.isEmpty ? "the certificate alone" : issuers.joined(separator: " → ")],
            ["fingerprint", fingerprint], ["sites", sitesText],
        ]
        if let server { rows.append(["enrolled", server]) }
        return TextTable(rows: rows.map { $0.map(Console.printable) }).text
    }

    /// `12 days left`, or since when not.
    var remaining: String {
        isExpired ? "expired \(notAfter)" : "\(daysLeft) \(daysLeft == 1 ? "day" : "days") left"
    }

    var sitesText: String {
        var parts = sites
        if !sitesByIssuer.isEmpty { parts.append("\(sitesByIssuer.count) by issuer") }
        return parts.isEmpty ? "none" : parts.joined(separator: ", ")
    }

    private var purpose: String { isForClients ? "" : " (not for client authentication)" }

    private var keyPlace: String {
        if let token { return "in the token \(token)" }
        return hasPrivateKey ? "in the vault" : "not in the vault"
    }
}

/// Where an identity's key is.
enum KeyPlace: Equatable {
    case vault
    case token(String)
    case nowhere

    /// `leaf` is the certificate that the key has to belong to.
    init(of name: String, leaf: Certificate, in contents: VaultContents?) {
        if contents?.identityKeys[name]?.leafSHA256 == leaf.sha256Fingerprint {
            self = .vault
        } else if let key = contents?.tokenKeys[name], key.leafSHA256 == leaf.sha256Fingerprint {
            self = .token(key.uri)
        } else {
            self = .nowhere
        }
    }

    var tokenURI: String? {
        if case .token(let uri) = self { uri } else { nil }
    }
}

/// A day in UTC as ISO 8601 writes it.
enum Day {
    static let seconds: Int64 = 86_400

    /// `seconds` are since 1970.
    static func text(_ seconds: Int64) -> String {
        String(WallClock.rfc3339(seconds).prefix { $0 != "T" })
    }
}
