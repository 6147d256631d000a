// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignSignIn
import CountersignVault
import Dispatch
import FoundationEssentials
import Logging
import Synchronization

/// Asks silently whether the device complies with the policies of the sign-ins that are withheld, or whose profiles
/// want that confirmed regularly, on a ``ComplianceSchedule`` for each. Opens no page: a person is never asked from
/// here. Wipes enrolments that have been unconfirmed for too long.
///
/// There must be only one for a home in a process; ``RenewalKeeper`` has it.
final class ComplianceKeeper: Sendable {
    let policyKeeper: PolicyKeeper
    let now: @Sendable () -> Int64
    private let chance: @Sendable () -> Double
    let logger: Logger
    private let told = Mutex<(any ComplianceDelegate)?>(nil)
    private let task = Mutex<Task<Void, Never>?>(nil)
    /// By the name of the sign-in.
    private let schedules = Mutex<[String: Watched]>([:])
    /// Reads files and waits for servers, so that no thread of the concurrency pool is blocked.
    private let queue = DispatchQueue(label: "countersign.compliance")

    /// The longest interval between two readings of the vault, in seconds.
    private static let period: Int64 = 60

    private struct Watched {
        /// Of the sign-in, so that another one of its name begins anew.
        let identifier: String
        var schedule: ComplianceSchedule
        /// The time of the first question after the deadline that was not answered with a confirmation, in seconds
        /// since 1970.
        var failingSince: Int64?
        /// The log has announced the approaching deadline.
        var hasWarned = false
    }

    /// The consequence of a question without a confirmation.
    enum Unconfirmed { case goOn, warn, wipe }

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

    /// Hears about changes and wipes.
    var delegate: (any ComplianceDelegate)? {
        get { told.withLock { $0 } }
        set { told.withLock { $0 = newValue } }
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

    /// Until the next question, or the next reading of the vault.
    private var pause: Duration {
        let next = schedules.withLock { $0.values.map(\.schedule.due).min() } ?? .max
        let time = now()
        return .seconds(max(1, min(Self.period, next > time ? next - time : 1)))
    }

    /// Asks the questions that are due.
    func check() async {
        await onQueue { [self] isAbandoned in
            guard let vault = policyKeeper.vault, (try? vault.reload()) != nil else { return }
            for name in due(in: vault.contents) where !isAbandoned() { check(name, in: vault, isAbandoned) }
        }
    }

    /// Runs blocking work. `body` learns whether the task was cancelled.
    private func onQueue(_ body: @escaping @Sendable (_ isAbandoned: @escaping @Sendable () -> Bool) -> Void) async {
        let isAbandoned = Atomic(false)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async {
                    body { isAbandoned.load(ordering: .relaxed) }
                    continuation.resume()
                }
            }
        } onCancel: {
            isAbandoned.store(true, ordering: .relaxed)
        }
    }

    /// The sign-ins that are due for a check. Forgets those that need no check.
    private func due(in contents: VaultContents) -> [String] {
        let time = now()
        let watched = contents.signIns.values.filter { Self.isWatched($0, in: contents, at: time) }
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

    private static func isWatched(_ record: SignInRecord, in contents: VaultContents, at time: Int64) -> Bool {
        guard contents.wipes[record.name] == nil, record.ended != SignInRecord.isSigningOut,
            let service = (try? SignInProfile(Array(record.profile.utf8)))?.compliance
        else { return false }
        let isWithheld = contents.compliance[record.name]?.isCompliant == false
        return isWithheld || record.deadline(in: contents, service)?.needsConfirmation(at: time) == true
    }

    private func check(_ name: String, in vault: OpenVault, _ isAbandoned: @escaping @Sendable () -> Bool) {
        let before = vault.contents
        let operations = VaultOperations(
            home: policyKeeper.home, vault: vault, renewals: policyKeeper.signInRenewals, now: now)
        let dialogue = OperationDialogue(report: { _ in }, isAbandoned: isAbandoned)
        let report: ComplianceReport?
        do {
            report = try operations.checkCompliance(
                of: name, languages: PreferredLanguages.field(in: policyKeeper.environment), dialogue)
        } catch {
            if isAbandoned() { return }
            logger.warning("the compliance of \"\(name)\" cannot be checked: \(SignInRenewals.text(error))")
            report = nil
        }
        noteAsked(name)
        if let report {
            policyKeeper.refresh(force: true)
            self.report(report, of: name, before.compliance[name], vault.contents.compliance[name])
        }
        if report?.restarts == true, before.compliance[name]?.isCompliant == false {
            policyKeeper.organisationWantsRestart()
        }
        // Another process may have had it confirmed or removed meanwhile.
        let contents = vault.contents
        guard report?.isCompliant != true, let record = contents.signIns[name],
            Self.isWatched(record, in: contents, at: now()),
            let service = (try? SignInProfile(Array(record.profile.utf8)))?.compliance,
            let deadline = record.deadline(in: contents, service)
        else { return }
        noteUnconfirmed(record, deadline, in: vault, isAbandoned)
    }

    /// Counts a question without a confirmation.
    func noteFailure(of name: String, _ deadline: ComplianceDeadline, at time: Int64) -> Unconfirmed {
        schedules.withLock { schedules in
            guard var watched = schedules[name] else { return .goOn }
            defer { schedules[name] = watched }
            watched.failingSince = time < deadline.end ? nil : watched.failingSince ?? time
            if deadline.isOver(at: time, failingSince: watched.failingSince) { return .wipe }
            guard deadline.isNear(at: time), !watched.hasWarned else { return .goOn }
            watched.hasWarned = true
            return .warn
        }
    }

    private func noteAsked(_ name: String) {
        let time = now()
        schedules.withLock { $0[name]?.schedule.noteAsked(at: time, chance: chance()) }
    }

    /// Logs the change.
    private func report(
        _ report: ComplianceReport, of name: String, _ before: ComplianceRecord?, _ after: ComplianceRecord?
    ) {
        guard let after, after.status != before?.status else {
            logger.debug("the compliance service of \"\(name)\" says \(report.status)")
            return
        }
        if report.isCompliant {
            let failure = report.tokenFailure.map { ", but there is no new access token yet: \($0)" } ?? ""
            logger.notice("the device complies with the policy of \"\(name)\" again\(failure)")
        } else {
            logger.warning("\(after.reason ?? after.title)")
        }
        guard let delegate else { return }
        let account = ListedCompliance(after).account ?? name
        let result = ComplianceResult(report, accountID: account, name: name)
        let restarts = report.restarts
        // The next question does not wait for the program.
        Task {
            if restarts { await delegate.saveState(before: result) }
            await delegate.remediated(result)
        }
    }
}
