// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Dispatch
import Synchronization
import Testing

@testable import CountersignEvents

@Suite struct EventRingTests {
    private let board = EventBoard()

    private func tell(_ numbers: ClosedRange<Int>) {
        for number in numbers {
            let site = RequestSite("https://\(number).example:443", rule: "a.sites:\(number)")
            board.tell(ofRequest: RequestEvent(id: UInt64(number), method: "GET", site: site, decision: .intercept))
        }
    }

    /// The numbers of the requests, and the negative counts of lost events.
    private func contents(_ events: [Event]?) -> [Int]? {
        events?.map { event in
            switch event.kind {
            case .request(let request): Int(request.id)
            case .lost(let count): -Int(count)
            default: 0
            }
        }
    }

    @Test(arguments: [1, 3, 4, 5, 100, 4096])
    func whatAReaderGetsAndWhatItLosesIsAll(capacity: Int) {
        let reader = board.reader(capacity: capacity)
        var next = 1
        for count in [1, capacity, capacity + 1, 1, 3 * capacity + 2, capacity - 1, 1] where count > 0 {
            tell(next...(next + count - 1))
            let lost = max(0, count - capacity)
            let expected = (lost > 0 ? [-lost] : []) + Array((next + lost)..<(next + count))
            #expect(contents(reader.next(timeout: .never)) == expected, "\(count)")
            next += count
        }
    }

    @Test func aReaderThatSleepsTakesNothingFromTheOthers() {
        let sleeping = board.reader(capacity: 8)
        let readers = (0..<2).map { _ in board.reader(capacity: 16) }
        for round in 0..<100 {
            tell((round * 16 + 1)...(round * 16 + 16))
            for reader in readers {
                #expect(contents(reader.next(timeout: .never)) == Array((round * 16 + 1)...(round * 16 + 16)))
            }
        }
        #expect(board.droppedCount == 1592)
        #expect(contents(sleeping.next(timeout: .never)) == [-1592] + Array(1593...1600))
    }

    @Test func readersGetTheSameBytesWhichAreMadeOnce() throws {
        let readers = (0..<3).map { _ in board.reader() }
        tell(1...50)
        let batches = try readers.map { try #require($0.next(timeout: .never)) }
        for events in batches {
            for (event, first) in zip(events, batches[0]) {
                #expect(event.line == first.json.utf8 + [0x0A])
                let isShared = event.line.withUnsafeBytes { one in
                    first.line.withUnsafeBytes { $0.baseAddress == one.baseAddress }
                }
                #expect(isShared)
            }
        }
    }

    @Test func aReaderThatComesLaterGetsWhatComesThen() {
        let first = board.reader(capacity: 4)
        tell(1...3)
        // More than there was room for until now.
        let second = board.reader(capacity: 1000)
        tell(4...4)
        #expect(contents(first.next(timeout: .never)) == [1, 2, 3, 4])
        #expect(contents(second.next(timeout: .never)) == [4])
    }

    @Test func aRemovedReaderChangesNothingForTheOthers() {
        let readers = [8, 8, 32].map { board.reader(capacity: $0) }
        tell(1...10)
        board.remove(readers[1])
        #expect(board.droppedCount == 4)
        tell(11...20)
        #expect(contents(readers[2].next(timeout: .never)) == Array(1...20))
        #expect(contents(readers[0].next(timeout: .never)) == [-12] + Array(13...20))
        #expect(contents(readers[1].next(timeout: .never)) == [-2] + Array(3...10))
        #expect(readers[1].next(timeout: .never) == nil)
        #expect(board.droppedCount == 14)
        board.remove(readers[1])
        board.remove(readers[0])
        board.remove(readers[2])
        #expect(!board.isWatched)
    }

    @Test func theLastEventsAreReadAfterTheEnd() {
        let reader = board.reader()
        tell(1...5)
        board.finish()
        tell(6...7)
        #expect(contents(reader.next(timeout: .never)) == [1, 2, 3, 4, 5])
        #expect(reader.next(timeout: .never) == nil)
    }

    @Test func aReaderWithoutEventsReturnsInTime() {
        let reader = board.reader()
        #expect(reader.next(timeout: .milliseconds(1))?.isEmpty == true)
        tell(1...1)
        #expect(contents(reader.next(timeout: .never)) == [1])
        #expect(reader.next(timeout: .milliseconds(0))?.isEmpty == true)
    }

    /// Readers come, read and go while two threads tell.
    @Test func nothingIsRepeatedAndTheOrderStaysWhileReadersComeAndGo() {
        let tellers = Atomic(2)
        DispatchQueue.concurrentPerform(iterations: 5) { index in
            guard index >= 2 else {
                tell(1...2000)
                tellers.subtract(1, ordering: .relaxed)
                return
            }
            repeat {
                let reader = board.reader(capacity: 64)
                let events = (0..<20).flatMap { _ in reader.next(timeout: .milliseconds(1)) ?? [] }
                board.remove(reader)
                #expect(isInOrder(events))
            } while tellers.load(ordering: .relaxed) > 0
        }
        #expect(!board.isWatched)
    }

    /// Nothing is missing between two events but what the later one says.
    private func isInOrder(_ events: [Event]) -> Bool {
        zip(events.dropFirst(), events).allSatisfy { event, before in
            if case .lost(let count) = event.kind { return event.number == before.number + count }
            return event.number == before.number + 1
        }
    }
}

extension SiteInventoryTests {
    @Test func aSiteWithoutALineIsNotNoted() {
        let inventory = SiteInventory()
        inventory.note(
            RequestSite("https://a.example:443"), offered: [], answered: nil, isRefused: false, status: 200,
            milliseconds: 1, now: 0)
        #expect(inventory.json.isEmpty)
    }
}
