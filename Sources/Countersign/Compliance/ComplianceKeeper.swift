// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignSignIn
import CountersignVault
import Dispatch
import FoundationEssentials
import Logging
import Synchronization

/// Asks silently whether the device complies with the policies of the sign-ins that are withheld, on a
/// ``ComplianceSchedule`` for each. Opens no page: a person is never asked from here.
///
/// There must be only one for a home in a process; ``RenewalKeeper`` has it.
final class ComplianceKeeper: Sendable {
    private let policyKeeper: PolicyKeeper
    private let now: @Sendable () -> Int64
    private let chance: @Sendable () -> Double
    private let logger: Logger
    private let task = Mutex<Task<Void, Never>?>(nil)
    /// By the name of the sign-in.
    private let schedules = Mutex<[String: Watched]>([:])
    /// Reads files and waits for servers, so that no thread of the concurrency pool is blocked.
    private let queue = DispatchQueue(label: "countersign.compliance")

    /// The longest interval between two looks at the vault, in seconds.
    private static let period: Int64 = 60

    private struct Watched {
        /// Of the sign-in, so that another one of its name begins anew.
        let identifier: String
        var schedule: ComplianceSchedule
    }

    /// `now` returns seconds since 1970, and `chance` a number from 0 to 1.
    init(
        policyKeeper: PolicyKeeper, now: @escaping @Sendable () -> Int64,
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }, logger: Logger
    ) {
        self.policyKeeper = policyKeeper
        self.now = now
        self.chance = chance
        self.logger = logger
    }

    /// Checks now, and then whenever a question is due until ``stop()`` or until the keeper is released.
    func start() {
        task.withLock { task in
            guard task == nil else { return }
            task = Task.detached { [weak self] in
                while !Task.isCancelled {
                    await self?.check()
                    guard let pause = self?.pause else { return }
                    do { try await Task.sleep(for: pause) } catch { return }
                }
            }
        }
    }

    /// Ends a question in progress.
    func stop() {
        task.withLock { task in
            task?.cancel()
            task = nil
        }
    }

    /// Until the next question, or the next look at the vault.
    private var pause: Duration {
        let next = schedules.withLock { $0.values.map(\.schedule.due).min() } ?? .max
        let time = now()
        return .seconds(max(1, min(Self.period, next > time ? next - time : 1)))
    }

    /// Asks the questions that are due.
    func check() async {
        let isAbandoned = Atomic(false)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { [self] in
                    check { isAbandoned.load(ordering: .relaxed) }
                    continuation.resume()
                }
            }
        } onCancel: {
            isAbandoned.store(true, ordering: .relaxed)
        }
    }

    private func check(isAbandoned: @escaping @Sendable () -> Bool) {
        guard let vault = policyKeeper.vault, (try? vault.reload()) != nil else { return }
        for name in due(in: vault.contents) where !isAbandoned() { check(name, in: vault, isAbandoned) }
    }

    /// The sign-ins about which a question is due. Forgets those about which there is none.
    private func due(in contents: VaultContents) -> [String] {
        let time = now()
        let watched = contents.signIns.values.filter { Self.isWatched($0, in: contents) }
        return schedules.withLock { schedules in
            let before = schedules
            schedules = [:]
            for record in watched {
                let checked = contents.compliance[record.name]?.checked ?? 0
                if var known = before[record.name], known.identifier == record.identifier {
                    known.schedule.observed(checked: checked, chance: chance())
                    schedules[record.name] = known
                } else {
                    schedules[record.name] = Watched(
                        identifier: record.identifier,
                        schedule: ComplianceSchedule(checked: checked, now: time, chance: chance()))
                }
            }
            return schedules.filter { $0.value.schedule.isDue(at: time) }.keys.sorted()
        }
    }

    private static func isWatched(_ record: SignInRecord, in contents: VaultContents) -> Bool {
        guard contents.compliance[record.name]?.isCompliant == false, contents.wipes[record.name] == nil,
            record.ended != SignInRecord.isSigningOut
        else { return false }
        return (try? SignInProfile(Array(record.profile.utf8)))?.compliance != nil
    }

    private func check(_ name: String, in vault: OpenVault, _ isAbandoned: @escaping @Sendable () -> Bool) {
        let before = vault.contents.compliance[name]
        let operations = VaultOperations(home: policyKeeper.home, vault: vault, now: now)
        let dialogue = OperationDialogue(report: { _ in }, isAbandoned: isAbandoned)
        let report: ComplianceReport?
        do {
            report = try operations.checkCompliance(
                of: name, languages: PreferredLanguages.field(in: policyKeeper.environment), dialogue)
        } catch {
            if isAbandoned() { return }
            noteAsked(name)
            logger.warning("the compliance of \"\(name)\" cannot be checked: \(SignInRenewals.text(error))")
            return
        }
        noteAsked(name)
        guard let report else { return }
        policyKeeper.refresh(force: true)
        log(report, of: name, before, vault.contents.compliance[name])
    }

    private func noteAsked(_ name: String) {
        let time = now()
        schedules.withLock { $0[name]?.schedule.noteAsked(at: time, chance: chance()) }
    }

    /// What has changed.
    private func log(
        _ report: ComplianceReport, of name: String, _ before: ComplianceRecord?, _ after: ComplianceRecord?
    ) {
        if report.isCompliant {
            let failure = report.tokenFailure.map { ", but there is no new access token yet: \($0)" } ?? ""
            logger.notice("the device complies with the policy of \"\(name)\" again\(failure)")
        } else if let after, after.status != before?.status {
            logger.warning("\(after.reason ?? after.title)")
        } else {
            logger.debug("the device does not comply with the policy of \"\(name)\" yet (\(report.status))")
        }
    }
}
