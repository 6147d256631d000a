// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
package import CountersignDeviceManagement
import CountersignOAuth
import CountersignVault
import FoundationEssentials

/// Whether the device complies with the policy of a sign-in's organisation, for display.
package struct ListedCompliance: Equatable, Sendable, Codable {
    /// The part of the `homeAccountId` before the dot; nil if the provider has not said.
    package let account: String?
    /// The name of a ``ComplianceStatus``.
    package let status: String
    /// Of the organisation; empty for a device that complies.
    package let title: String
    package let message: String
    /// The page on which a person can make the device comply; nil if unknown.
    package let page: String?
    /// In seconds since 1970.
    package let checked: Int64
    /// When the device was last known to comply, in seconds since 1970; nil if that is not known.
    package let confirmed: Int64?
    /// When the results of the sign-in are wiped unless the device is confirmed to comply, in seconds since 1970; nil
    /// for never.
    package let wipe: Int64?

    package var isCompliant: Bool { status == ComplianceStatus.compliant.name }

    init(_ record: ComplianceRecord, wipe: Int64? = nil) {
        let account = ClientInfo.accountIdentifier(of: record.homeAccount)
        self.account = account.isEmpty ? nil : account
        status = (ComplianceStatus(rawValue: record.status) ?? .serviceFailure).name
        title = record.title
        message = record.message
        page = record.page.isEmpty ? nil : record.page
        checked = record.checked
        confirmed = record.confirmed == 0 ? nil : record.confirmed
        self.wipe = wipe
    }
}

/// The outcome of a remediation.
package struct ComplianceReport: Equatable, Sendable, Codable {
    package let status: String
    package let title: String
    package let message: String
    package let page: String?
    package let rules: [Rule]
    package let hasNoPolicy: Bool
    /// The organisation wants the program to start again.
    package let restarts: Bool
    /// Why there is no new access token although the device complies; nil if there is one, or none is needed.
    package let tokenFailure: String?

    package struct Rule: Equatable, Sendable, Codable {
        package let title: String
        package let description: String
        package let moreInformation: String?
    }

    package var isCompliant: Bool { status == ComplianceStatus.compliant.name }

    package init(_ outcome: ComplianceOutcome, tokenFailure: String? = nil) {
        status = outcome.status.name
        title = outcome.title
        message = outcome.message
        page = outcome.page?.description
        rules = outcome.rules.map {
            Rule(title: $0.title, description: $0.description, moreInformation: $0.moreInformation)
        }
        hasNoPolicy = outcome.hasNoPolicy
        restarts = outcome.restarts
        self.tokenFailure = tokenFailure
    }
}

extension ComplianceRecord {
    /// The state after an outcome. Texts that are too long for the vault are cut.
    mutating func take(_ outcome: ComplianceOutcome, at time: Int64) {
        status = outcome.status.rawValue
        checked = time
        if outcome.status == .compliant { confirmed = time }
        title = outcome.status == .compliant ? "" : Self.line(outcome.title)
        message = outcome.status == .compliant ? "" : Self.line(outcome.message)
        page = outcome.page?.description ?? ""
    }

    private static func line(_ text: String) -> String {
        let text = text.filter { !$0.isNewline && $0 != "\t" }
        return VaultLimits.isSignInLine(text) ? text : String(text.prefix(500))
    }

    /// Clients and proxies limit a response's header section, often to 8 KiB, and the reason is in one field of it.
    /// A longer text ends with three dots; a longer address is left out, the command shows it.
    private static let (reasonTextLimit, reasonPageLimit) = (300, 1000)

    private static func short(_ text: String) -> String {
        let scalars = text.unicodeScalars
        return scalars.count <= reasonTextLimit ? text : "\(String(scalars.prefix(reasonTextLimit - 3)))..."
    }

    /// Why no challenge of the sign-in is answered: for `Proxy-Status`, the log and `explain`. Nil if that is not so.
    var reason: String? {
        guard !isCompliant else { return nil }
        let text = title.hasSuffix(".") ? "\(title) \(message)" : "\(title). \(message)"
        let open = page.isEmpty || page.utf8.count > Self.reasonPageLimit ? "" : "open \(page) or "
        let sentences = Self.short(text)
        let stop = [".", "!", "?"].contains(sentences.last) ? "" : "."
        return "the device does not comply with the policy of \"\(name)\": \(sentences)\(stop) "
            + "To continue, \(open)run \(Remedy.remediate(name: name).sentence)"
    }
}

extension VaultContents {
    /// The device complies: the provider has issued a token, or the compliance service says so.
    mutating func noteCompliance(of name: String, at time: Int64) throws(VaultError) {
        guard var record = compliance[name] else { return }
        record.take(ComplianceOutcome(.compliant), at: time)
        try setCompliance(record)
    }

    /// Why the credential and session of these sign-ins are not used, although the vault has them.
    var withheld: [String: Refusal] {
        guard !compliance.isEmpty || !wipes.isEmpty else { return [:] }
        var reasons: [String: Refusal] = [:]
        for record in compliance.values {
            reasons[record.name] = record.reason.map { Refusal(.notCompliant(record.name), $0) }
        }
        for wipe in wipes.values where signIns[wipe.name].map({ $0.identifier == wipe.identifier }) ?? true {
            reasons[wipe.name] = Refusal(
                .wiped(wipe.name), "\"\(wipe.name)\" is being wiped", .completeWipe(name: wipe.name))
        }
        return reasons
    }

    /// The same of identities, by their names: those that a sign-in has obtained or installed with a configuration
    /// profile. A person's own identity with the name of a sign-in is used.
    var withheldIdentities: [String: Refusal] {
        let withheld = withheld
        guard !withheld.isEmpty else { return [:] }
        var reasons = withheld.filter { signIns[$0.key].map(ownsCertificate) ?? false }
        for profile in profiles.values {
            guard let owner = profile.owner, let reason = withheld[owner.signIn] else { continue }
            for identity in profile.identities where identity.isBrought { reasons[identity.name] = reason }
            if let enrollment = profile.enrollment { reasons[enrollment.name] = reason }
        }
        return reasons
    }
}
