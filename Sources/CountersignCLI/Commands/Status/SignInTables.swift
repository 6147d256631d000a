// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignReporting
import CountersignVault

/// The tables about sign-ins in the text of `status`.
struct SignInTables {
    let signIns: [ListedSignIn]
    /// Those that sign-ins have installed.
    let profiles: [ProfileRecord]
    /// In seconds since 1970.
    let now: Int64
    /// A wider table is shown as one paragraph per row.
    let columns: Int
    var hasHeader = true

    /// Without those that are empty.
    var texts: [String] {
        [
            table(
                ["NAME", "ACCOUNT", "PROVIDER", "STATE"],
                signIns.map { [$0.name, $0.account, $0.issuer, $0.state(at: now)] }),
            table(
                ["NAME", "SCOPES", "SITES"],
                signIns.map { [$0.name, Self.some($0.scopes), Self.some($0.plainSites)] }),
            table(
                ["NAME", "CERTIFICATE", "SERVER", "STATE"],
                signIns.compactMap { signIn in
                    signIn.certificate.map {
                        [signIn.name, $0.subject ?? "-", $0.server, $0.state(at: now)]
                    }
                }),
            table(
                ["NAME", "PROFILE", "IDENTIFIER", "INSTALLED"],
                profiles.map { [$0.owner?.signIn ?? "", $0.name, $0.identifier, Day.text($0.installed)] }),
        ].compactMap(\.self)
    }

    private func table(_ header: [String], _ rows: [[String]]) -> String? {
        guard !rows.isEmpty else { return nil }
        let rows = rows.map { $0.map(Console.printable) }
        let table = TextTable(rows: (hasHeader ? [header] : []) + rows).text
        guard table.split(separator: "\n").contains(where: { $0.count > columns }) else { return table }
        let labels = header.dropFirst().map { "  \($0.lowercased())" }
        return rows.map { row in
            "\(row[0])\n" + TextTable(rows: zip(labels, row.dropFirst()).map { [$0, $1] }).text
        }.joined()
    }

    /// The first elements, so that the table stays readable.
    private static func some(_ texts: [String]) -> String {
        let shown = texts.prefix(texts.count == 5 ? 5 : 4).joined(separator: ", ")
        return texts.isEmpty ? "none" : texts.count > 5 ? "\(shown) and \(texts.count - 4) more" : shown
    }
}

/// A sign-in in the JSON of `status`.
struct SignInRow: Encodable {
    let name: String
    let issuer: String
    let account: String?
    let subject: String?
    let scope: String
    let profile: String
    let sites: [String]
    let signedIn: String
    let expires: String?
    let isRenewable: Bool
    let hasEnded: Bool
    let state: String
    let certificate: SignInCertificateRow?
    let compliance: ComplianceRow?
    /// The identifiers of the configuration profiles that it has installed.
    let profiles: [String]

    init(_ signIn: ListedSignIn, _ known: [ProfileRecord], now: Int64) {
        compliance = signIn.compliance.map { ComplianceRow($0) }
        name = signIn.name
        issuer = signIn.issuer
        account = signIn.account.isEmpty ? nil : signIn.account
        subject = signIn.subject.isEmpty ? nil : signIn.subject
        scope = signIn.scope
        profile = signIn.source
        sites = signIn.sites
        signedIn = WallClock.rfc3339(signIn.signedIn)
        expires = signIn.expires == 0 ? nil : WallClock.rfc3339(signIn.expires)
        isRenewable = signIn.isRenewable
        hasEnded = signIn.hasEnded(at: now)
        state = signIn.state(at: now)
        certificate = signIn.certificate.map { SignInCertificateRow($0, now: now) }
        profiles = known.filter { $0.owner?.signIn == signIn.name }.map(\.identifier)
    }
}

/// The client certificate of a sign-in in the JSON of `status`.
struct SignInCertificateRow: Encodable {
    let server: String
    let subject: String?
    let notAfter: String?
    let state: String

    init(_ certificate: ListedCertificate, now: Int64) {
        server = certificate.server
        subject = certificate.subject
        notAfter = certificate.notAfter.map(WallClock.rfc3339)
        state = certificate.state(at: now)
    }
}

extension ListedCertificate {
    func state(at now: Int64) -> String {
        if isMissing == true { return "refused; sign in again to request one" }
        guard let notAfter else { return pendingUntil == nil ? "to be requested" : "the server has not decided yet" }
        if notAfter <= now { return "expired \(WallClock.rfc3339(notAfter))" }
        let renewal = pendingUntil == nil ? failures > 0 ? ", not renewed" : "" : ", renewal requested"
        return "valid until \(WallClock.rfc3339(notAfter))\(renewal)"
    }
}

extension ListedSignIn {
    var scopes: [String] { scope.split(separator: " ").map(String.init) }

    /// The sites without their options.
    var plainSites: [String] { sites.compactMap { $0.split(separator: " ").first.map(String.init) } }

    /// The person has to sign in again.
    func hasEnded(at now: Int64) -> Bool {
        !ended.isEmpty || !isRenewable && expires != 0 && expires <= now
    }

    func state(at now: Int64) -> String {
        if let unstored { return "at risk until new tokens can be stored: \(unstored)" }
        if !ended.isEmpty { return "ended: \(ended)" }
        if let compliance, !compliance.isCompliant {
            let remedy = "`countersign compliance remediate \(name)`"
            return "not used: the device does not comply: \(compliance.title); \(remedy)"
        }
        if hasEnded(at: now) { return "expired \(WallClock.rfc3339(expires))" }
        if failures > 0 { return "not renewed since \(WallClock.rfc3339(lastFailure))" }
        if expires == 0 { return "valid" }
        if expires <= now { return "to be renewed" }
        return "valid until \(WallClock.rfc3339(expires))" + (isRenewable ? ", renewable" : "")
    }
}
