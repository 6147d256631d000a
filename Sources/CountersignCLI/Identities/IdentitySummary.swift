// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignReporting
import CountersignSitePolicy
import FoundationEssentials
import Glibc

/// A client identity as `certificate list` and `certificate inspect` show it.
struct IdentitySummary: Encodable {
    let name: String
    let subject: String
    let issuer: String
    let serialNumber: String
    let notBefore: String
    let notAfter: String
    let daysLeft: Int64
    let hoursLeft: Int64
    /// `12 days left` or `expired 2026-01-01`.
    let remaining: String
    let isExpired: Bool
    let key: String
    /// The token's URI if the key is in a token.
    let token: String?
    let hasPrivateKey: Bool
    let signature: String
    let alternativeNames: String?
    let keyUsage: String?
    let extendedKeyUsage: String?
    let isForClients: Bool
    /// The subjects of the issuers in the chain.
    let issuers: [String]
    let fingerprint: String
    /// The EST server, if the identity is enrolled.
    let server: String?
    /// The fingerprints of the anchors that verify that server; nil if the system's do.
    let serverAnchors: [String]?
    /// The fingerprints of the anchors that verify the certificates that it issues.
    let anchors: [String]?
    /// The sites whose line names this identity.
    let sites: [String]
    /// The sites whose line names no identity; they receive one whose issuer the server accepts.
    let sitesByIssuer: [String]

    private enum CodingKeys: String, CodingKey {
        case name, subject, issuer, notBefore, notAfter, daysLeft, hoursLeft, key, token, signature, alternativeNames,
            keyUsage
        case extendedKeyUsage, issuers, fingerprint, server, serverAnchors, anchors, sites, sitesByIssuer
        case serialNumber = "serial"
        case isExpired = "expired"
        case isForClients = "clientAuthentication"
        case hasPrivateKey = "privateKey"
    }

    init(_ found: ListedIdentity, _ sites: IdentitySites) throws {
        let chain = try found.chain.map { try Certificate(der: Array($0)) }
        guard let leaf = chain.first else { throw CountersignError.unexpectedAnswer }
        let name = found.name
        let now = Int64(time(nil))
        self.name = name
        subject = leaf.subject
        issuer = leaf.issuer
        serialNumber = leaf.serialNumberHex
        notBefore = Day.text(leaf.notBefore)
        notAfter = Day.text(leaf.notAfter)
        daysLeft = max(0, leaf.notAfter / Day.seconds - now / Day.seconds)
        hoursLeft = max(0, leaf.notAfter - now) / 3600
        remaining = Day.left(until: leaf.notAfter, now: now)
        isExpired = leaf.notAfter < now
        key = leaf.keyDescription
        token = if case .token(let uri) = found.key { uri } else { nil }
        hasPrivateKey = found.key != .nowhere
        signature = leaf.signatureDescription
        alternativeNames = leaf.alternativeNamesText
        keyUsage = leaf.keyUsageText
        extendedKeyUsage = leaf.extendedKeyUsageText
        isForClients = leaf.allowsClientAuthentication && leaf.allowsDigitalSignature
        issuers = chain.dropFirst().map(\.subject)
        fingerprint = leaf.fingerprintText
        server = found.enrollment?.server
        anchors = found.enrollment.map { Self.fingerprints($0.anchors) }
        serverAnchors = found.enrollment?.serverAnchors.map(Self.fingerprints)
        self.sites = sites.named(name)
        sitesByIssuer = sites.byIssuer
    }

    /// One line per field.
    var text: String {
        let usages = [keyUsage, extendedKeyUsage].compactMap(\.self)
        var rows = [
            ["name", name], ["subject", subject], ["issuer", issuer], ["serial", serialNumber],
            ["valid", "\(notBefore) to \(notAfter), \(remaining)"],
            ["key", "\(key), \(keyPlace)"], ["signature", signature], ["names", alternativeNames ?? "none"],
            ["usage", (usages.isEmpty ? "any" : usages.joined(separator: "; ")) + purpose],
            ["chain", issuers.isEmpty ? "no issuers" : issuers.joined(separator: " → ")],
            ["fingerprint", fingerprint], ["sites", sitesText],
        ]
        if let server {
            rows.append(["enrolled", server])
            rows.append([
                "server trust", serverAnchors?.joined(separator: ", ") ?? "the system's anchors and Certs/anchors",
            ])
            rows.append(["issuer trust", anchors?.joined(separator: ", ") ?? "none"])
        }
        return TextTable(rows: rows.map { $0.map(Console.printable) }).text
    }

    private static func fingerprints(_ anchors: [Data]) -> [String] {
        anchors.compactMap { try? Certificate(der: Array($0)).fingerprintText }
    }

    var sitesText: String {
        var parts = sites
        if !sitesByIssuer.isEmpty { parts.append("\(sitesByIssuer.count) by issuer") }
        return parts.isEmpty ? "none" : parts.joined(separator: ", ")
    }

    /// Empty for an identity that clients can use.
    var purpose: String { isForClients ? "" : " (not for client authentication)" }

    private var keyPlace: String {
        if let token { return "in the token \(token)" }
        return hasPrivateKey ? "in the vault" : "not in the vault"
    }
}

/// The listed sites that permit client certificates.
struct IdentitySites {
    private let rules: [SiteRule]

    /// Reads the current list. If it is invalid, writes a warning and has no sites.
    init(of home: Home) {
        do {
            rules = try home.sites().rules.filter { rule in
                rule.pattern.scheme == .https && rule.intercepts && rule.answer.contains(.certificate)
            }
        } catch {
            Console.warning(
                "cannot read the allowed-sites list, so sites are not shown",
                hint: "run `countersign sites list`")
            rules = []
        }
    }

    /// The sites whose line names this identity.
    func named(_ name: String) -> [String] { sites { $0.identity == name } }

    /// The sites whose line names no identity; they receive one whose issuer the server accepts.
    var byIssuer: [String] { sites { $0.identity == nil } }

    /// Each once, although several of its lines may do.
    private func sites(where isOne: (SiteRule) -> Bool) -> [String] {
        var seen: Set<SitePattern> = []
        return rules.filter { isOne($0) && seen.insert($0.pattern).inserted }.map(\.pattern.description)
    }
}
