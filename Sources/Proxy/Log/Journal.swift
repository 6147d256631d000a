// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignEvents
import Glibc
import Synchronization

/// Where each request and tunnel is reported when it has ended: the access log, the readers of events, the meter, and
/// the record of credentials' uses. What nobody receives is not made.
final class Journal: Sendable {
    let log: AccessLog?
    let events: EventBoard?
    let meter: (any RequestMeter)?
    let recorder: (any CredentialUseRecorder)?
    let inventory: SiteInventory?
    private let lastID = Atomic<UInt64>(0)

    /// The start of a request or tunnel.
    struct Start {
        fileprivate let time: (seconds: Int64, milliseconds: Int64)
        fileprivate let nanoseconds: UInt64
        fileprivate let id: UInt64
    }

    init(
        log: AccessLog?, events: EventBoard?, meter: (any RequestMeter)?, recorder: (any CredentialUseRecorder)?,
        inventory: SiteInventory?
    ) {
        self.log = log
        self.events = events
        self.meter = meter
        self.recorder = recorder
        self.inventory = inventory
    }

    /// Whether anybody may receive anything.
    private var isKept: Bool {
        log != nil || meter != nil || recorder != nil || inventory != nil || events?.isWatched == true
    }

    /// Whether the number of the client's process is received by somebody.
    var wantsProcess: Bool { log != nil || recorder != nil || events?.isWatched == true }

    /// Nil if nobody receives anything.
    func start() -> Start? {
        guard isKept else { return nil }
        return Start(
            time: WallClock.now(), nanoseconds: Self.monotonicNanoseconds,
            id: lastID.add(1, ordering: .relaxed).newValue)
    }

    /// Reports a request or tunnel that has ended.
    func write(
        _ start: Start, of session: ClientSession, method: @autoclosure () -> String,
        site: @autoclosure () -> RequestSite, decision: AccessLog.Decision,
        _ outcome: @autoclosure () -> AccessLog.Outcome
    ) {
        let elapsed = Self.monotonicNanoseconds - start.nanoseconds
        let (outcome, site) = (outcome(), site())
        meter?.requestEnded(
            method: method(), status: outcome.status, decision: decision.rawValue, rule: site.rule,
            challenge: outcome.challenge, check: outcome.check, nanoseconds: elapsed)
        inventory?.note(
            site, offered: outcome.offered, answered: outcome.challenge, isRefused: outcome.check != nil,
            status: outcome.status, milliseconds: elapsed / 1_000_000, now: start.time.seconds)
        guard log != nil || events?.isWatched == true else { return }
        let entry = AccessLog.Entry(
            startedAt: start.time, id: start.id, client: session.process, method: method(), site: site,
            decision: decision, outcome: outcome, durationMilliseconds: Int64(clamping: elapsed / 1_000_000))
        log?.write(entry)
        events?.tell(ofRequest: entry.event)
    }

    /// Records that a request has used a credential, if it has: as soon as it is known what came of it, because the
    /// response may go on for days.
    func recordUse(
        _ start: Start, of session: ClientSession, method: @autoclosure () -> String,
        site: @autoclosure () -> RequestSite, decision: AccessLog.Decision, _ outcome: borrowing AccessLog.Outcome
    ) {
        guard let recorder, let name = outcome.credential ?? outcome.connectionCredential?.name else { return }
        var outcome = copy outcome
        outcome.challenge = outcome.challenge ?? "connection"
        outcome.credential = name
        let entry = AccessLog.Entry(
            startedAt: start.time, id: start.id, client: session.process, method: method(), site: site(),
            decision: decision, outcome: outcome)
        let client = session.client?.facts
        recorder.record(
            CredentialUseEvent(
                entry.event, program: client?.executable?.path, controlGroup: client?.controlGroup?.path,
                generation: outcome.generation ?? outcome.connectionCredential?.generation,
                time: Timestamp(WallClock.now()), result: outcome.verdict ?? (outcome.isOrigins ? .sent : .unanswered)))
    }

    /// Called every second by each event loop.
    func secondPassed(now: UInt64) {
        log?.secondPassed(now: now)
        recorder?.secondPassed(now: now)
    }

    static var monotonicNanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
