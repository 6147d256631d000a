// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Dispatch
import Synchronization
import Testing

@testable import CountersignEvents

@Suite struct EventBoardTests {
    private static func request(_ id: UInt64) -> RequestEvent {
        RequestEvent(id: id, method: "GET", site: RequestSite("https://a.example:443"), decision: .intercept)
    }

    @Test func withoutAReaderNoEventIsMade() {
        let board = EventBoard()
        var made = 0
        func make() -> Event.Kind {
            made += 1
            return .paused
        }
        board.tell(make())
        #expect(made == 0)
        let reader = board.reader()
        board.tell(make())
        #expect(made == 1)
        board.remove(reader)
        board.tell(make())
        #expect(made == 1)
    }

    @Test func everyReaderGetsEveryEventInOrder() {
        let board = EventBoard()
        let readers = (0..<3).map { _ in board.reader() }
        for id in 1...100 { board.tell(ofRequest: Self.request(UInt64(id))) }
        for reader in readers {
            #expect(reader.next(timeout: .never)?.map(\.number) == Array(1...100))
        }
    }

    @Test func aSlowReaderLosesItsOldestEventsAndLearnsHowMany() throws {
        let board = EventBoard()
        let slow = board.reader(capacity: 10)
        let other = board.reader(capacity: 100)
        for _ in 0..<25 { board.tell(.resumed) }
        #expect(board.droppedCount == 15)
        let batch = try #require(slow.next(timeout: .never))
        #expect(batch.map(\.number) == [15] + Array(16...25))
        guard case .lost(15) = batch[0].kind else {
            Issue.record("the first event is \(batch[0].kind), not 15 lost ones")
            return
        }
        #expect(board.droppedCount == 15)
        #expect(other.next(timeout: .never)?.count == 25)
        board.tell(.resumed)
        #expect(slow.next(timeout: .never)?.map(\.number) == [26])
    }

    @Test func aWaitingReaderIsWoken() {
        let board = EventBoard()
        let reader = board.reader()
        let queue = DispatchQueue(label: "teller")
        queue.async { board.tell(.locked) }
        #expect(reader.next(timeout: .never)?.count == 1)
        queue.async { board.finish() }
        #expect(reader.next(timeout: .never) == nil)
    }

    @Test func nothingIsLostOrRepeatedAcrossThreads() {
        let board = EventBoard()
        let reader = board.reader(capacity: 100_000)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for id in 0..<1000 { board.tell(ofRequest: Self.request(UInt64(id))) }
        }
        #expect(reader.next(timeout: .never)?.map(\.number) == Array(1...8000))
    }

    @Test func theListenerHearsEverythingButRequestsWithoutAReader() {
        let heard = Mutex<[String]>([])
        let board = EventBoard { kind in
            heard.withLock { $0.append(Event(number: 0, time: Timestamp((0, 0)), kind: kind).name) }
        }
        board.tell(.locked)
        board.tell(ofRequest: Self.request(1))
        board.tell(.renewed(identity: "laptop"))
        #expect(heard.withLock { $0 } == ["locked", "renewed"])
        #expect(!board.isWatched)
    }
}

@Suite struct EventTests {
    @Test(arguments: [
        (
            Event.Kind.rejected(
                site: "https://a.example:443", rule: "a.sites:1", scheme: "ntlm", realm: nil, credential: "work"),
            #""site":"https://a.example:443","rule":"a.sites:1","scheme":"ntlm","credential":"work""#
        ),
        (
            .untrusted(site: "https://a.example:443", rule: nil, reason: "expired", fingerprint: "sha256:00"),
            #""site":"https://a.example:443","reason":"expired","fingerprint":"sha256:00""#
        ),
        (.reloaded(sites: 3), #""sites":3"#), (.lost(count: 7), #""count":7"#),
        (
            .notice(level: "warning", message: "a \"b\"\u{202E}", hint: nil),
            #""level":"warning","message":"a \"b\"\u202e""#
        ),
    ])
    func anEventIsOneJSONObject(kind: Event.Kind, members: String) throws {
        let event = Event(number: 5, time: Timestamp((1_700_000_000, 45)), kind: kind)
        #expect(
            event.json.text
                == #"{"event":"\#(event.name)","n":5,"time":"2023-11-14T22:13:20.045Z",\#(members)}"#)
        _ = try JSONParser.parse(event.json.utf8)
    }

    @Test func aRequestHasTheMembersOfTheAccessLog() {
        let site = RequestSite("https://a.example:443", rule: "AllowedSites/work.sites:3")
        var request = RequestEvent(id: 9, method: "GET", site: site, decision: .intercept)
        (request.pid, request.uid) = (8, 7)
        (request.challenge, request.credential) = ("ntlm", "work")
        request.details = RequestEvent.Details(offered: ["negotiate", "ntlm"])
        (request.check, request.status, request.milliseconds) = (.credential, 401, -5)
        let event = Event(number: 1, time: Timestamp((0, 1)), kind: .request(request))
        #expect(
            event.json.text
                == #"{"event":"request","n":1,"time":"1970-01-01T00:00:00.001Z","id":9,"pid":8,"uid":7,"method":"GET","#
                + #""site":"https://a.example:443","decision":"intercept","rule":"AllowedSites/work.sites:3","#
                + #""challenge":"ntlm","credential":"work","offered":["negotiate","ntlm"],"check":"credential","#
                + #""rounds":0,"status":401,"bytes":0,"ms":0}"#)
    }
}

@Suite struct SiteInventoryTests {
    @Test func aSiteHasAllThatItHasOffered() {
        let inventory = SiteInventory()
        for (offered, answered, status) in [(["ntlm"], String?.none, 401), (["negotiate", "ntlm"], "ntlm", 200)] {
            inventory.note(
                RequestSite("https://a.example:443", rule: "a.sites:1"), offered: offered, answered: answered,
                isRefused: answered == nil, status: status, milliseconds: 12, now: 0)
        }
        #expect(
            inventory.json.map(\.text) == [
                #"{"site":"https://a.example:443","rule":"a.sites:1","offered":["ntlm","negotiate"],"answered":"ntlm","#
                    + #""requests":2,"refused":1,"lastStatus":200,"lastMs":12,"lastTime":"1970-01-01T00:00:00Z"}"#
            ])
    }

    @Test func thereIsRoomForAThousandOrigins() {
        let inventory = SiteInventory()
        for number in 0..<1500 {
            inventory.note(
                RequestSite("https://\(number).example:443", rule: "a.sites:1"), offered: [], answered: nil,
                isRefused: false, status: 200, milliseconds: 1, now: 0)
        }
        #expect(inventory.json.count == 1000)
    }
}
