// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import Dispatch
import Synchronization
import Testing

@testable import Countersign

/// The files of a home whose changes take effect at once.
@Suite(.waiting) struct HomeWatcherTests {
    private final class Count: Sendable {
        let number = Atomic(0)
    }

    @Test(
        arguments: [
            "vault", "vault.key", "breaker.json", "paused", "AllowedSites/work.sites", "Certs/anchors/a.pem",
            "Certs/identities/a.pem",
        ], [false, true])
    func aChangedFileIsReported(_ name: String, whilePolling polls: Bool) async throws {
        let folder = try TemporaryFolder("watched")
        for known in ["AllowedSites", "Certs/anchors", "Certs/identities"] { try folder.write("\(known)/README", "") }
        let count = Count()
        let queue = DispatchQueue(label: "test")
        let watcher = HomeWatcher(Home(path: folder.path), on: queue, polls: polls) {
            count.number.add(1, ordering: .relaxed)
        }
        // Opening a lock is not a change: a reader that takes one must not wake itself.
        for lock in ["vault.lock", "breaker.lock", "breaker.running"] { try folder.write(lock, "") }
        try folder.write(name, "1")
        #expect(try await eventually { count.number.load(ordering: .relaxed) > 0 })
        withExtendedLifetime(watcher) {}
    }

    /// An event as inotify(7) writes it.
    private static func event(watch: UInt8, _ name: String) -> [UInt8] {
        let padded = Array(name.utf8) + [UInt8](repeating: 0, count: 16 - name.utf8.count % 16)
        return [watch, 0, 0, 0] + [8, 0, 0, 0] + [0, 0, 0, 0] + [UInt8(padded.count), 0, 0, 0] + padded
    }

    @Test func eventsAreSplitAndTheHomeIsTheFirstWatch() {
        let bytes = Self.event(watch: 1, "vault.lock") + Self.event(watch: 2, "work.sites") + [1, 0, 0, 0]
        let events = HomeWatcher.events(in: bytes[...])
        #expect(events.map(\.name) == ["vault.lock", "work.sites"])
        #expect(events.map(\.isOfFolder) == [false, true])
    }

    @Test func aControllerAtRestDoesNotWakeItself() async throws {
        let home = try LibraryHome("https://git.corp.example answer=basic\n")
        let controller = try home.controller()
        let count = Count()
        let queue = DispatchQueue(label: "test")
        let watcher = HomeWatcher(Home(path: home.path), on: queue) {
            count.number.add(1, ordering: .relaxed)
            controller.keeper.refresh()
        }
        _ = await controller.handle(AuthenticationChallenge(protectionSpace: .git(.basic)))
        // Ten changes, so that a refresh that caused an event of its own would go on without end.
        for index in 0..<10 { try home.write(sites: "https://git.corp.example answer=basic # \(index)\n") }
        #expect(try await eventually { count.number.load(ordering: .relaxed) > 0 })
        var before = -1
        var quiet = 0
        let end = ContinuousClock.now + .seconds(20)
        while quiet < 5, ContinuousClock.now < end {
            let now = count.number.load(ordering: .relaxed)
            quiet = now == before ? quiet + 1 : 0
            before = now
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(quiet == 5, "\(before) refreshes")
        withExtendedLifetime(watcher) {}
    }
}
