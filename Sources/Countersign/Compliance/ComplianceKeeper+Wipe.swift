// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignSignIn
import CountersignVault
import Dispatch
import Logging

// The results of an enrolment are wiped after the days of its profile without a confirmation that the device complies.

extension SignInRecord {
    /// When the results of this sign-in are wiped from the device; nil if its profile sets no deadline.
    func deadline(in contents: VaultContents, _ service: ComplianceService) -> ComplianceDeadline? {
        service.wipeAfterDays.map {
            ComplianceDeadline(confirmed: contents.compliance[name]?.confirmed ?? signedIn, days: $0)
        }
    }
}

extension VaultOperations {
    func compliance(of signIn: SignInRecord) -> ListedCompliance? {
        guard let contents = vault?.contents, let record = contents.compliance[signIn.name] else { return nil }
        let service = (try? SignInProfile(Array(signIn.profile.utf8)))?.compliance
        return ListedCompliance(record, wipe: service.flatMap { signIn.deadline(in: contents, $0) }?.end)
    }
}

extension ComplianceKeeper {
    /// A question about the sign-in was not answered with a confirmation: wipes the sign-in if its time is over.
    func noteUnconfirmed(
        _ record: SignInRecord, _ deadline: ComplianceDeadline, in vault: OpenVault,
        _ isAbandoned: @escaping @Sendable () -> Bool
    ) {
        let time = now()
        let since = "since \(WallClock.rfc3339(vault.contents.compliance[record.name]?.confirmed ?? record.signedIn))"
        let unconfirmed = "nobody has confirmed \(since) that the device complies with the policy of \"\(record.name)\""
        switch noteFailure(of: record.name, deadline, at: time) {
        case .goOn: break
        case .warn:
            logger.warning(
                "\(unconfirmed); what it has brought is wiped after \(WallClock.rfc3339(deadline.end))",
                metadata: ["hint": "run `countersign compliance remediate \(record.name)`"])
        case .wipe:
            logger.warning("\(unconfirmed): what it has brought is wiped")
            wipe(record, in: vault, isAbandoned)
        }
    }

    private func wipe(_ record: SignInRecord, in vault: OpenVault, _ isAbandoned: @escaping @Sendable () -> Bool) {
        let service = (try? SignInProfile(Array(record.profile.utf8)))?.compliance
        let account = vault.contents.compliance[record.name].map { ListedCompliance($0) }?.account
        let wipe = ComplianceWipe(
            signIn: record.name, accountID: account ?? record.name, days: service?.wipeAfterDays.map { Int($0) })
        let delegate = delegate
        try? Blocking.run { [self] in
            await wipe.perform(for: delegate) {
                await withCheckedContinuation { continuation in
                    DispatchQueue(label: "countersign.wipe").async {
                        continuation.resume(returning: self.complete(record, service, in: vault, isAbandoned))
                    }
                }
            }
        }
        policyKeeper.refresh(force: true)
    }

    /// Returns why the wipe is not complete; nil if it is.
    private func complete(
        _ record: SignInRecord, _ service: ComplianceService?, in vault: OpenVault,
        _ isAbandoned: @escaping @Sendable () -> Bool
    ) -> String? {
        let name = record.name
        let time = now()
        let dialogue = OperationDialogue(report: { _ in }, isAbandoned: isAbandoned)
        do {
            let operations = VaultOperations(home: policyKeeper.home, vault: vault, now: now)
            // The app was notified, and this call may have waited for another process. Meanwhile, the person may have
            // made the device compliant or signed in again, so the deadline is checked once more.
            let result = try operations.wipe(
                name,
                if: { newest, contents in
                    let deadline = service.flatMap { newest.deadline(in: contents, $0) }
                    return newest.identifier == record.identifier && deadline.map { time >= $0.end } ?? false
                }, dialogue)
            guard let done = result.done else {
                let reason = "the device was confirmed to comply, or the sign-in has changed"
                logger.notice("\"\(name)\" is not wiped: \(reason) meanwhile")
                return "\(reason) meanwhile"
            }
            logger.notice("wiped \"\(name)\" and all that it has brought")
            if let warning = done.warning {
                logger.warning("the provider has not revoked the tokens of \"\(name)\": \(warning)")
            }
            return nil
        } catch {
            let reason = SignInRenewals.text(error)
            logger.warning("the wipe of \"\(name)\" cannot be completed: \(reason)")
            return reason
        }
    }
}
