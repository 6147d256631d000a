// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault

extension VaultOperations {
    /// Asks the compliance service of a sign-in to register, enrol and apply the policy, and then the provider for a
    /// token. The receiver of the progress opens pages, unless it `isSilent`.
    func remediate(
        _ name: String, isSilent: Bool, languages: String, seconds: Int64, _ dialogue: OperationDialogue
    ) throws -> Named<ComplianceReport> {
        guard let vault, let record = vault.contents.signIns[name] else {
            return .unknown(known: signInNames)
        }
        let outcome = try ask(for: record, in: vault, isSilent: isSilent, languages, seconds, dialogue)
        guard outcome.status == .compliant else {
            try note(outcome, of: record, isRefused: outcome.status == .notCompliant)
            return .done(ComplianceReport(outcome))
        }
        return .done(try renewToken(of: record, after: outcome))
    }

    /// Checks silently whether the device complies: asks the service, and if the service needs a person for the check,
    /// the provider, because a new token is a confirmation, too. While the sign-in is withheld, asks the provider only
    /// when its token is due: it may not know the service's result yet. Nil if the sign-in no longer exists. Throws
    /// `refused` if the dialogue is abandoned; nothing is recorded then.
    func checkCompliance(of name: String, languages: String, _ dialogue: OperationDialogue) throws -> ComplianceReport?
    {
        guard let vault, let record = vault.contents.signIns[name], vault.contents.wipes[name] == nil else {
            return nil
        }
        let outcome = try ask(
            for: record, in: vault, isSilent: true, languages, ComplianceFlow.silentLimit.components.seconds, dialogue)
        if dialogue.isAbandoned?() == true { throw CountersignError(.refused, "the remediation was interrupted") }
        switch outcome.status {
        case .compliant: return try renewToken(of: record, after: outcome)
        case .notCompliant, .userCancelled: try note(outcome, of: record, isRefused: outcome.status == .notCompliant)
        case .serviceFailure, .networkFailure, .interactionRequired:
            let isWithheld = vault.contents.compliance[name]?.isCompliant == false
            let isDue = record.renewalTime(delayedBy: 0).map { $0 <= now() } ?? false
            guard record.ended.isEmpty, record.isRenewable, isDue || !isWithheld else {
                try note(outcome, of: record, isRefused: false)
                break
            }
            let failure = try renewNow(name, in: vault)
            if failure == nil { return ComplianceReport(ComplianceOutcome(.compliant)) }
            try note(
                outcome, of: record, isRefused: (failure as? OAuthError)?.code == .protectionPolicyRequired)
        }
        return ComplianceReport(outcome)
    }

    private func ask(
        for record: SignInRecord, in vault: OpenVault, isSilent: Bool, _ languages: String, _ seconds: Int64,
        _ dialogue: OperationDialogue
    ) throws -> ComplianceOutcome {
        let profile = try SignInProfile(Array(record.profile.utf8))
        let client = try home.providerClient(now: now)
        guard
            let flow = ComplianceFlow(
                profile, client: client, languages: languages, limit: .seconds(max(1, min(seconds, 86_400))), now: now)
        else {
            throw CountersignError(
                .configuration, "the profile of \(record.name.debugDescription) names no compliance service",
                hint: "ask for a profile with \"compliance_service\", and enrol with it again")
        }
        let account = record.complianceAccount(in: vault.contents)
        let isValid = record.ended.isEmpty && (record.expires == 0 || record.expires > now())
        let enrolled = vault.contents.tokens[record.name]
        // The service takes bearer tokens alone.
        let token = isValid && enrolled?.bound == nil ? enrolled?.token : nil
        let open: ComplianceFlow.Show = { url in
            dialogue.report(.pageToOpen(url: url.description))
            while true {
                switch dialogue.pageEnd() {
                case .closed: throw SignInError(.cancelled, "the person has closed the page")
                case .failed(let reason): throw SignInError(.noAgent, reason)
                case nil: try await Task.sleep(for: .milliseconds(250))
                }
            }
        }
        let show = isSilent ? nil : open
        return try Blocking.run(isAbandoned: dialogue.isAbandoned) {
            await flow.remediate(account, token: token, show: show)
        }
    }

    /// The service calls the device compliant; the provider has the last word.
    private func renewToken(of record: SignInRecord, after outcome: ComplianceOutcome) throws -> ComplianceReport {
        let vault = try opened()
        let failure = try renewNow(record.name, in: vault)
        if let error = failure as? OAuthError, error.code == .protectionPolicyRequired {
            let still = NotCompliant.stillRefused(outcome, account: record.account).outcome
            try note(still, of: record, isRefused: true)
            return ComplianceReport(still, tokenFailure: error.detail)
        }
        try vault.update { contents in
            guard let newest = contents.signIns[record.name], newest.isSame(as: record) else { return }
            try contents.noteCompliance(of: record.name, at: now())
        }
        return ComplianceReport(outcome, tokenFailure: failure.map(SignInRenewals.text))
    }

    private func renewNow(_ name: String, in vault: OpenVault) throws -> (any Error)? {
        try Blocking.run {
            try await SignInRenewals.using(renewals, home: home, vault: vault, now: now) { await $0.renewNow(name) }
        }
    }

    /// Unless the service or the provider has refused, or had refused before, the sign-in stays in use: an outage or a
    /// closed window says nothing about the device.
    private func note(_ outcome: ComplianceOutcome, of record: SignInRecord, isRefused: Bool) throws {
        let time = now()
        try opened().update { contents in
            guard let newest = contents.signIns[record.name], newest.isSame(as: record),
                isRefused || contents.compliance[record.name]?.isCompliant == false
            else { return }
            try contents.note(outcome, of: record.name, at: time)
        }
    }
}

extension VaultContents {
    /// Stores the outcome of a sign-in's remediation.
    mutating func note(_ outcome: ComplianceOutcome, of name: String, at time: Int64) throws(VaultError) {
        var record = compliance[name] ?? ComplianceRecord(name: name, homeAccount: "", checked: time)
        record.take(outcome, at: time)
        try setCompliance(record)
    }
}

extension SignInRecord {
    func complianceAccount(in contents: VaultContents) -> ComplianceAccount {
        ComplianceAccount(
            identifier: contents.compliance[name].map { ClientInfo.accountIdentifier(of: $0.homeAccount) },
            user: account)
    }
}
