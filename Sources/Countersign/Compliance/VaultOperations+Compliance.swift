// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignOAuth
import CountersignSignIn
import CountersignVault

extension VaultOperations {
    /// Asks the compliance service of a sign-in to register, enrol and apply the policy, and then the provider for a
    /// token. Pages are opened by whoever receives the progress, unless it `isSilent`.
    func remediate(
        _ name: String, isSilent: Bool, languages: String, seconds: Int64, _ dialogue: OperationDialogue
    ) throws -> VaultResult {
        guard let vault, let record = vault.contents.signIns[name] else {
            return .removed(count: 0, known: Set((vault?.contents.signIns ?? [:]).keys))
        }
        let profile = try SignInProfile(Array(record.profile.utf8))
        let client = try home.providerClient(now: now)
        guard
            let flow = ComplianceFlow(
                profile, client: client, languages: languages, limit: .seconds(max(1, min(seconds, 86_400))), now: now)
        else {
            throw CountersignError(
                .configuration, "the profile of \(name.debugDescription) names no compliance service",
                hint: "ask for a profile with \"compliance_service\", and enrol with it again")
        }
        let account = record.complianceAccount(in: vault.contents)
        let isValid = record.ended.isEmpty && (record.expires == 0 || record.expires > now())
        let token = isValid ? vault.contents.tokens[name]?.token : nil
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
        let outcome = try Blocking.run(isAbandoned: dialogue.isAbandoned) {
            await flow.remediate(account, token: token, show: show)
        }
        guard outcome.status == .compliant else {
            try note(outcome, of: record, isRefused: outcome.status == .notCompliant)
            return .compliance(ComplianceReport(outcome))
        }
        let renewals = SignInRenewals(home: home, vault: vault, now: now)
        let failure = try Blocking.run { await renewals.renew(afterRemediating: name) }
        if let error = failure as? OAuthError, error.code == .protectionPolicyRequired {
            let still = NotCompliant.stillRefused(outcome, account: account.user).outcome
            try note(still, of: record, isRefused: true)
            return .compliance(ComplianceReport(still, tokenFailure: error.detail))
        }
        try vault.update { contents in
            guard let newest = contents.signIns[name], newest.isSame(as: record) else { return }
            try contents.noteCompliance(of: name, at: now())
        }
        return .compliance(ComplianceReport(outcome, tokenFailure: failure.map(SignInRenewals.text)))
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
    /// Stores what a remediation of a sign-in has brought about.
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
