// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import Glibc

/// The warnings about client identities, trust anchors and the local CA's root that end soon. Access tokens have their
/// own time scale, and are left out.
struct EndingWarnings: Sendable {
    /// How many days before the end there is a warning.
    static let days: [Int64] = [14, 7, 1]
    /// How often `serve` looks.
    private static let interval = Duration.seconds(3600)

    /// How many of ``days`` had been reached at the last warning.
    private var stages: [Ending: Int] = [:]

    /// The endings to warn about at `now`, in seconds since 1970: each at most once per element of ``days``.
    mutating func due(_ endings: [Ending], at now: Int64) -> [Ending] {
        stages = stages.filter { endings.contains($0.key) }
        return endings.filter { ending in
            let stage = Self.stage(of: ending, at: now)
            guard stage > stages[ending] ?? 0 else { return false }
            stages[ending] = stage
            return true
        }
    }

    /// Those on their last day.
    static func lastDay(_ endings: [Ending], at now: Int64) -> [Ending] {
        endings.filter { stage(of: $0, at: now) == days.count }
    }

    private static func stage(of ending: Ending, at now: Int64) -> Int {
        if case .accessToken = ending.thing { return 0 }
        guard !ending.hasPassed(at: now) else { return 0 }
        return days.count { ending.time - now <= $0 * Day.seconds }
    }

    // MARK: For commands that run a proxy

    /// Those of the keeper's home. Faults of its files are reported elsewhere.
    private static func endings(of keeper: PolicyKeeper, at now: Int64) -> [Ending] {
        let certificates = (try? Ending.ofCertificates(in: keeper.home)) ?? []
        guard !keeper.isLocked else { return certificates }
        let operations = VaultOperations(home: keeper.home, vault: keeper.vault, now: { now })
        let states = (try? operations.perform(ListRenewalStates())) ?? []
        return certificates + states.compactMap { Ending($0, at: now) }
    }

    private static func write(_ endings: [Ending], at now: Int64) {
        for ending in endings { Console.warning(ending.sentence(at: now), hint: ending.advice) }
    }

    /// For `exec`.
    static func writeLastDay(of keeper: PolicyKeeper) {
        let now = Int64(time(nil))
        write(lastDay(endings(of: keeper, at: now), at: now), at: now)
    }

    /// For `serve`: writes those that are due now, and later ones until the task is cancelled.
    static func start(_ keeper: PolicyKeeper) -> Task<Void, Never> {
        var warnings = EndingWarnings()
        warnings.write(of: keeper)
        return Task { [warnings] in
            var warnings = warnings
            while (try? await Task.sleep(for: interval)) != nil { warnings.write(of: keeper) }
        }
    }

    private mutating func write(of keeper: PolicyKeeper) {
        let now = Int64(time(nil))
        Self.write(due(Self.endings(of: keeper, at: now), at: now), at: now)
    }
}
