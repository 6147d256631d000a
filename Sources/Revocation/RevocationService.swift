// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Dispatch
import Synchronization

/// Learns whether certificates are revoked from the sources that they name: OCSP responders (RFC 6960) and revocation
/// lists (RFC 5280 §5), over http.
///
///     RevocationQuestion → RevocationService → FetchQueue → StatusFetch (libcurl), RevocationStorage (disk)
///                        → CertificateStatus, remembered until its validity ends
///
/// The first of its points with a good or revoked status answers a question: responders first. All callers share one
/// fetch of a document at a time, on the threads of the queue. A document is stored only after its signature by the
/// certificate's issuer was verified. The module `Certificates` judges all bytes; this one only obtains them. A status
/// that cannot be learned is remembered for ``retrySeconds``, so that not every connection tries a responder that is
/// down.
package final class RevocationService: Sendable {
    /// How long a failure is remembered.
    package static let retrySeconds: Int64 = 60
    /// How long a document is used without asking again, even if its issuer says that it is valid for longer.
    static let longestUseSeconds: Int64 = 7 * 86_400
    /// The same for a document without nextUpdate, whose issuer may publish another one at any time.
    static let undatedUseSeconds: Int64 = 3_600
    /// The largest number of statuses that are remembered.
    static let statusLimit = 4096

    private struct Key: Hashable {
        let certificate: Certificate
        let issuer: Certificate

        init(_ question: RevocationQuestion) {
            certificate = question.certificate
            issuer = question.issuer
        }

        init(_ certificate: Certificate, _ issuer: Certificate) {
            self.certificate = certificate
            self.issuer = issuer
        }
    }

    /// A question that is being answered.
    private struct Flight {
        let started: ContinuousClock.Instant
        var waiters: [Waiter] = []
    }

    private struct State {
        var statuses: [Key: CertificateStatus] = [:]
        var flights: [Key: Flight] = [:]
        var obtaining: [DocumentName: [@Sendable (Result<RevocationDocument, FetchFault>) -> Void]] = [:]
        var lists = RecentLists()
    }

    private let state = Mutex(State())
    private let changes = Atomic<UInt64>(0)
    private let queue: FetchQueue
    private let storage: RevocationStorage
    private let fetch: @Sendable (StatusFetch) -> Result<[UInt8], FetchFault>
    /// Serial, so that it has a thread of its own.
    private let timers = DispatchQueue(label: "countersign.revocation.timers")
    /// With the number of listeners on each: a new one may begin before the old one has ended.
    private let ownPorts = Mutex<[UInt16: Int]>([:])
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64

    /// `storage` keeps documents beyond the life of the process. `fetch` replaces libcurl in tests.
    package init(
        storage: RevocationStorage = .none, now: @escaping @Sendable () -> Int64,
        fetch: @escaping @Sendable (StatusFetch) -> Result<[UInt8], FetchFault> = { $0.run() }
    ) {
        self.storage = storage
        self.now = now
        self.fetch = fetch
        queue = FetchQueue()
    }

    /// The ports on which this process listens. Nothing is fetched from them on this machine.
    package func addOwnPorts(_ ports: Set<UInt16>) {
        ownPorts.withLock { own in
            for port in ports { own[port, default: 0] += 1 }
        }
    }

    /// This process no longer listens there.
    package func removeOwnPorts(_ ports: Set<UInt16>) {
        ownPorts.withLock { own in
            for port in ports { own[port] = own[port].flatMap { $0 > 1 ? $0 - 1 : nil } }
        }
    }

    // MARK: Statuses

    /// The last learned status of `certificate` by `issuer`. It may no longer be valid.
    package func status(of certificate: Certificate, by issuer: Certificate) -> CertificateStatus? {
        state.withLock { $0.statuses[Key(certificate, issuer)] }
    }

    /// Changes with every status that is learned.
    package var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Learns the statuses. Calls `done` once, on any thread or during this call: when all are learned or cannot be, or
    /// when `patience` has passed since the first request for one of them.
    package func learn(
        _ questions: [RevocationQuestion], patience: Duration, done: @escaping @Sendable () -> Void
    ) {
        let time = now()
        let instant = ContinuousClock.now
        let waiter = Waiter(done)
        var starting: [RevocationQuestion] = []
        let left = state.withLock { state -> Duration? in
            var shortest: Duration?
            for question in questions {
                let key = Key(question)
                if let status = state.statuses[key], status.validity.contains(time) { continue }
                if state.flights[key] == nil {
                    state.flights[key] = Flight(started: instant)
                    starting.append(question)
                }
                guard let flight = state.flights[key] else { continue }
                let left = patience - (instant - flight.started)
                guard left > .zero else { continue }
                shortest = min(shortest ?? left, left)
                waiter.waitsForOneMore()
                state.flights[key]?.waiters.append(waiter)
            }
            return shortest
        }
        if let left {
            timers.asyncAfter(deadline: .now() + .nanoseconds(left.nanoseconds)) { waiter.expire() }
        } else {
            waiter.expire()
        }
        for question in starting { ask(question, question.points[...], after: []) }
    }

    /// Calls every `done` that is outstanding. For the end of the event loops that wait; fetches in progress continue.
    package func finishWaiting() {
        let waiters = state.withLock { state -> [Waiter] in
            var waiters: [Waiter] = []
            for key in state.flights.keys {
                waiters += state.flights[key]?.waiters ?? []
                state.flights[key]?.waiters = []
            }
            return waiters
        }
        for waiter in waiters { waiter.expire() }
    }

    // MARK: Asking

    /// Asks the points in order. `faults` say why the earlier ones gave no status.
    private func ask(_ question: RevocationQuestion, _ points: ArraySlice<RevocationPoint>, after faults: [String]) {
        guard let point = points.first else {
            let why = faults.joined(separator: ", ")
            return conclude(question, .unknown(why), from: nil, until: now() + Self.retrySeconds - 1)
        }
        @Sendable func next(_ fault: String) {
            ask(question, points.dropFirst(), after: faults + ["\(point.text) \(fault)"])
        }
        do throws(FetchFault) {
            let name = try DocumentName(point, question)
            obtain(name, for: question) { [self] result in
                switch result {
                case .failure(let fault): next(fault.text)
                case .success(let document):
                    let time = now()
                    let judged = document.judge(question, at: time)
                    if case .unknown(let why) = judged.finding { return next("is not usable: \(why)") }
                    keep(document, name)
                    conclude(
                        question, judged.finding, from: point.source,
                        until: min(judged.holdsUntil, document.lastSecondOfUse(isDated: judged.isDated)))
                }
            }
        } catch {
            next(error.text)
        }
    }

    private func conclude(
        _ question: RevocationQuestion, _ finding: CertificateStatus.Finding,
        from source: ServerTrust.RevocationSource?,
        until end: Int64
    ) {
        let time = now()
        let status = CertificateStatus(finding, from: source, validity: time...max(time, end))
        let waiters = state.withLock { state -> [Waiter] in
            if state.statuses.count >= Self.statusLimit {
                state.statuses = state.statuses.filter { $0.value.validity.contains(time) }
            }
            if state.statuses.count >= Self.statusLimit { state.statuses.removeAll() }
            state.statuses[Key(question)] = status
            return state.flights.removeValue(forKey: Key(question))?.waiters ?? []
        }
        changes.add(1, ordering: .releasing)
        for waiter in waiters { waiter.oneIsDone() }
    }

    // MARK: Documents

    /// Obtains a document on a thread of the queue. Callers for the same document at the same time share it.
    private func obtain(
        _ name: DocumentName, for question: RevocationQuestion,
        _ completion: @escaping @Sendable (Result<RevocationDocument, FetchFault>) -> Void
    ) {
        let isFirst = state.withLock { state in
            state.obtaining[name, default: []].append(completion)
            return state.obtaining[name]?.count == 1
        }
        guard isFirst else { return }
        let isQueued = queue.submit(host: name.target.origin.description) { [self] in
            finish(name, produce(name, for: question))
        }
        if !isQueued { finish(name, .failure(.tooMany)) }
    }

    private func finish(_ name: DocumentName, _ result: Result<RevocationDocument, FetchFault>) {
        let completions = state.withLock { $0.obtaining.removeValue(forKey: name) } ?? []
        for completion in completions { completion(result) }
    }

    /// A remembered or stored document that answers the question, or one that is fetched. Blocks.
    private func produce(_ name: DocumentName, for question: RevocationQuestion) -> Result<
        RevocationDocument, FetchFault
    > {
        let time = now()
        func isUsable(_ document: RevocationDocument) -> Bool {
            let judged = document.judge(question, at: time)
            if case .unknown = judged.finding { return false }
            return document.fetchedAt <= time && time <= document.lastSecondOfUse(isDated: judged.isDated)
        }
        if let recent = state.withLock({ $0.lists[name.target] }), isUsable(recent) { return .success(recent) }
        if let stored = storage.read(name.fileName).flatMap({ RevocationDocument(stored: $0, as: name) }),
            isUsable(stored)
        {
            return .success(stored)
        }
        let fetched = fetch(
            StatusFetch(
                target: name.target, request: name.request, mayBeLocal: name.mayBeLocal,
                ownPorts: ownPorts.withLock { Set($0.keys) }))
        return fetched.flatMap { RevocationDocument.received($0, as: name, at: time) }
    }

    /// Remembers a document whose signature is verified.
    private func keep(_ document: RevocationDocument, _ name: DocumentName) {
        state.withLock { $0.lists.add(document, for: name.target) }
        guard document.mustBeStored() else { return }
        storage.write(name.fileName, document.stored(as: name))
    }
}

/// A caller that waits for some questions.
private final class Waiter: Sendable {
    private struct State {
        var outstanding = 0
        var done: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>

    init(_ done: @escaping @Sendable () -> Void) { state = Mutex(State(done: done)) }

    func waitsForOneMore() { state.withLock { $0.outstanding += 1 } }

    func oneIsDone() { call { $0.outstanding -= 1 } }

    func expire() { call { $0.outstanding = 0 } }

    private func call(_ change: (inout State) -> Void) {
        let done = state.withLock { state -> (@Sendable () -> Void)? in
            change(&state)
            guard state.outstanding <= 0 else { return nil }
            defer { state.done = nil }
            return state.done
        }
        done?()
    }
}

extension Duration {
    fileprivate var nanoseconds: Int {
        Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
    }
}

extension RevocationPoint {
    fileprivate var source: ServerTrust.RevocationSource {
        switch self {
        case .responder(let url): .responder(url: url)
        case .list(let url): .distributedList(url: url)
        }
    }

    fileprivate var text: String {
        switch self {
        case .responder(let url): "OCSP responder \(url)"
        case .list(let url): "revocation list \(url)"
        }
    }
}
