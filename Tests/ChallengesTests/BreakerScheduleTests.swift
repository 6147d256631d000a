// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

/// A password changes while processes of one home use it at many sites. A directory counts the wrong ones that it has
/// received since then, even if the requests wait, are cancelled, or their processes are killed.
@Suite struct BreakerScheduleTests {
    @Test(arguments: 0..<4 as Range<UInt64>)
    func aQuietPasswordIsSentAtMostTwiceAfterItHasChanged(batch: UInt64) {
        var counts: [Int: Int] = [:]
        for seed in batch * 100..<(batch + 1) * 100 {
            var schedule = Schedule(seed, isQuiet: true)
            schedule.run()
            counts[schedule.wrong, default: 0] += 1
            #expect(schedule.wrong <= 2, "seed \(seed): \(schedule.wrong)")
        }
        // Otherwise the schedules would be too harmless to find anything.
        #expect(counts[1, default: 0] + counts[2, default: 0] > 90, "\(counts)")
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func afterTheFirstVerdictAPasswordInTrafficIsSentAtMostTwice(batch: UInt64) {
        for seed in batch * 100..<(batch + 1) * 100 {
            var schedule = Schedule(seed, isQuiet: false)
            schedule.run()
            #expect(schedule.wrongAfterVerdict <= 2, "seed \(seed): \(schedule.wrongAfterVerdict)")
        }
    }

    /// A password that stays correct is never held back, as long as all sites respond and no client gives up.
    @Test func aRightPasswordIsAnsweredWith() {
        for seed in 0..<100 as Range<UInt64> {
            var schedule = Schedule(seed, isQuiet: true, changes: false)
            schedule.run()
            #expect(schedule.refused == 0 && schedule.stuck == 0, "seed \(seed): \(schedule.refused) \(schedule.stuck)")
        }
    }
}

/// SplitMix64, so that a seed always means the same schedule.
private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Times are in milliseconds.
private struct Schedule {
    private struct Request {
        let key: Breaker.Key
        let tag: Breaker.RequestTag
        let process: Int
        /// How long its client waits for the response.
        let patience: Int
        /// From the answer to the judgement of the directory, and from that to the response.
        let delays: (Int, Int)
    }

    /// An answer on its way.
    private struct Answer {
        let request: Request
        let owner: UInt64
        let wasAsked: Bool
        let key: Breaker.Key
        /// Its outcome is not known yet.
        var isOpen = true
        var isRight = false
    }

    private struct Process {
        let owner: UInt64
        /// The records as it has seen them last.
        var known = Breaker()
        var waiting: [Request] = []
    }

    private enum Event {
        case arrival(Request)
        case change
        case judgement(Int)
        case response(Int)
        case departure(Int)
        case kill(Int)
    }

    private var random: Numbers
    private var breaker = Breaker()
    private var processes: [Process] = []
    private var answers: [Answer] = []
    private var events: [(at: Int, order: Int, event: Event)] = []
    private var time = 1_800_000_000_000
    private var order = 0
    private var isRight = true
    /// How many answers were sent before the first verdict against the password.
    private var sentBefore: Int?
    private(set) var wrong = 0
    /// Those that were sent after the first verdict.
    private(set) var wrongAfterVerdict = 0
    private(set) var refused = 0
    /// Requests that still wait when nothing more happens.
    var stuck: Int { processes.reduce(0) { $0 + $1.waiting.count } }

    // MARK: The plan

    init(_ seed: UInt64, isQuiet: Bool, changes: Bool = true) {
        random = Numbers(state: seed &* 2 &+ 1)
        processes = (0..<number(1...3)).map { Process(owner: UInt64($0 + 1)) }
        let sites = (1...number(1...12)).map { Breaker.Key.test(host: "h\($0).example") }
        let warm = sites.prefix(number((isQuiet ? 0 : 1)...sites.count))
        for site in warm { arrive(0, at: site, isPrompt: true) }
        // After the ten seconds of the last acceptance, or in the middle of the traffic.
        let change = isQuiet ? 20_000 : 5000
        if changes { add(change, .change) }
        if !isQuiet {
            for at in stride(from: 500, to: 8000, by: 100) { arrive(at, at: any(warm), isPrompt: true) }
        }
        for _ in 0..<number(2...100) {
            let delay = Bool.random(using: &random) ? number(1...10) : number(1...60_000)
            arrive(change + delay, at: any(sites[...]), isPrompt: !changes, isPatient: !changes)
        }
        for _ in 0..<(changes ? number(0...4) : 0) {
            add(change + number(0...30_000), .kill(number(0...processes.count - 1)))
        }
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    private mutating func any(_ sites: ArraySlice<Breaker.Key>) -> Breaker.Key {
        sites[number(sites.startIndex...sites.endIndex - 1)]
    }

    private mutating func arrive(_ delay: Int, at key: Breaker.Key, isPrompt: Bool, isPatient: Bool = true) {
        let longest = isPrompt ? 100 : 5000
        let path = Bool.random(using: &random) ? "/" : "/\(number(0...9))"
        let request = Request(
            key: key, tag: .init(method: "GET", target: path), process: number(0...processes.count - 1),
            patience: isPatient || Bool.random(using: &random) ? 60_000 : number(1...3000),
            delays: (number(1...longest), number(1...longest)))
        add(delay, .arrival(request))
    }

    private mutating func add(_ delay: Int, _ event: Event) {
        order += 1
        events.append((time + delay, order, event))
    }

    // MARK: Events

    mutating func run() {
        while let next = events.min(by: { ($0.at, $0.order) < ($1.at, $1.order) }) {
            events.removeAll { $0.order == next.order }
            time = next.at
            switch next.event {
            case .change: isRight = false
            case .arrival(let request): ask(request)
            case .judgement(let number): judge(number)
            case .response(let number): respond(number)
            case .departure(let number): end(number, .unknown)
            case .kill(let process): kill(process)
            }
        }
    }

    private var now: Int64 { Int64(time / 1000) }

    private mutating func ask(_ request: Request) {
        let (now, owner) = (now, processes[request.process].owner)
        if with(request.process, { $0.mayPreempt(request.key, at: now) }) {
            return send(request, Breaker.Key.free, wasAsked: false)
        }
        let attempt = UInt64(answers.count + 1)
        let decision = with(request.process) { breaker in
            let decision = breaker.decide(request.key, for: request.tag, at: now)
            if decision == .mayTry {
                breaker.attemptBegan(request.key.used(by: attempt), for: request.tag, owner: owner, at: now)
            }
            return decision
        }
        switch decision {
        case .free: send(request, Breaker.Key.free, wasAsked: true)
        case .mayTry: send(request, attempt, wasAsked: true)
        case .wait: processes[request.process].waiting.append(request)
        case .refused, .unsuitable: refused += 1
        }
    }

    private mutating func send(_ request: Request, _ attempt: UInt64, wasAsked: Bool) {
        answers.append(
            Answer(
                request: request, owner: processes[request.process].owner, wasAsked: wasAsked,
                key: request.key.used(by: attempt)))
        add(request.delays.0, .judgement(answers.count - 1))
        add(request.patience, .departure(answers.count - 1))
    }

    /// The directory judges an answer, even if nobody waits for the verdict.
    private mutating func judge(_ number: Int) {
        answers[number].isRight = isRight
        if !isRight {
            wrong += 1
            if let sentBefore, number >= sentBefore { wrongAfterVerdict += 1 }
        }
        add(answers[number].request.delays.1, .response(number))
    }

    private mutating func respond(_ number: Int) {
        let answer = answers[number]
        end(number, !answer.isRight ? .rejected : answer.wasAsked ? .accepted : .acceptedUnasked)
    }

    private mutating func end(_ number: Int, _ result: Breaker.Result) {
        let (answer, now) = (answers[number], now)
        guard answer.isOpen, processes[answer.request.process].owner == answer.owner else { return }
        answers[number].isOpen = false
        if result == .rejected, sentBefore == nil { sentBefore = answers.count }
        _ = with(answer.request.process) {
            $0.attemptEnded(answer.key, for: answer.request.tag, result, owner: answer.owner, at: now)
        }
        wakeAll()
    }

    private mutating func wakeAll() {
        for index in processes.indices {
            let waiting = processes[index].waiting.shuffled(using: &random)
            processes[index].waiting = []
            for request in waiting { ask(request) }
        }
    }

    /// Another process takes the place of this one.
    private mutating func kill(_ process: Int) {
        let (killed, now) = (processes[process].owner, now)
        processes[process] = Process(owner: killed + 100)
        with(process) { $0.abandonAttempts(at: now) { $0 != killed } }
        wakeAll()
    }

    /// Changes the records as a process sees them. All share them, except for the proofs that each has seen.
    @discardableResult
    private mutating func with<Result>(_ process: Int, _ body: (inout Breaker) -> Result) -> Result {
        var view = breaker
        view.confirm(as: processes[process].known)
        let result = body(&view)
        processes[process].known = view
        for account in view.accounts.keys { view.accounts[account]?.provenAt = nil }
        breaker = view
        return result
    }
}
