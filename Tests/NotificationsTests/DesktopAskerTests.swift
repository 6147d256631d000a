// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import CountersignSessionBus
import CountersignTestOrigin
import Glibc
import Testing

@testable import CountersignNotifications

/// Notifications on a bus of their own, with a stand-in server and its person.
@Suite struct DesktopAskerTests {
    /// What the person does, over another connection.
    private static func person(_ method: String, _ number: UInt32, _ key: String? = nil, at server: NotificationServer)
        throws
    {
        let connection = try BusConnection(server.bus.address)
        _ = connection.send(.hello)
        let call = BusCall(
            method, of: "test.Person", at: "/org/freedesktop/Notifications", to: "org.freedesktop.Notifications")
        call.append(.number(number))
        if let key { call.append(key) }
        let serial = try #require(connection.send(call))
        while connection.run(milliseconds: 1000) {
            while let message = connection.next() {
                guard message.replySerial == serial else { continue }
                #expect(message.errorName == nil)
                return
            }
        }
        throw WaitedTooLong()
    }

    private static func asker(
        _ desk: Desk, _ address: String, pause: Duration = .seconds(5)
    ) throws -> DesktopAsker {
        let made = DesktopAsker(
            address: address, desk: desk.desk, pauseBetweenAttempts: pause, report: desk.report)
        let asker = try #require(made)
        desk.isAsked(by: asker)
        return asker
    }

    @Test(arguments: [("allow-once", QuestionAnswer.once), ("allow-client", .quarter), ("deny", .deny)])
    func thePersonAnswersWithAButton(key: String, answer: QuestionAnswer) async throws {
        let server = try NotificationServer()
        let desk = Desk()
        let asker = try Self.asker(desk, server.bus.address)
        defer { asker.stop() }
        #expect(server.calls.isEmpty, "nothing is asked")
        desk.ask([.made(1), .made(2, client: "/opt/<i>x</i>")])
        let shown = try await server.calls(of: "Notify", count: 2)
        let second = shown[1]
        #expect(second.program == "Countersign" && second.number == 2 && second.replaces == 0)
        #expect(second.summary == "Permit POST to https://git.corp.example:443?")
        #expect(
            second.body
                == "/opt/&lt;i&gt;x&lt;/i&gt; wants to use the credential &quot;work&quot;. 1 request waits.")
        #expect(
            second.actions == ["allow-once", "Allow", "allow-client", "Allow for 15 minutes", "deny", "Deny"])
        #expect(second.urgency == 2 && second.urgencyType == "Byte" && second.expires == 41_000)
        try Self.person("Press", 2, key, at: server)
        try await waited { !desk.answers.isEmpty }
        #expect(desk.answers == [.init(id: 2, answer: answer)])
        #expect(try await server.calls(of: "CloseNotification", count: 1).map(\.number) == [2])
        #expect(desk.reports.isEmpty)
    }

    @Test func anotherProgramOnTheBusCannotAnswer() async throws {
        let server = try NotificationServer()
        let desk = Desk()
        let asker = try Self.asker(desk, server.bus.address)
        defer { asker.stop() }
        desk.ask([.made(1)])
        _ = try await server.calls(of: "Notify", count: 1)
        try Self.person("Forge", 1, "allow-once", at: server)
        try Self.person("Press", 1, "deny", at: server)
        try await waited { !desk.answers.isEmpty }
        #expect(desk.answers == [.init(id: 1, answer: .deny)])
    }

    @Test func aChangedQuestionIsReplacedAndAnEndedOneIsClosed() async throws {
        let server = try NotificationServer(["body"])
        let desk = Desk()
        let asker = try Self.asker(desk, server.bus.address)
        defer { asker.stop() }
        desk.ask([.made(1)])
        let first = try await server.calls(of: "Notify", count: 1)[0]
        #expect(first.actions == [] && first.body?.hasSuffix("\nAnswer with: countersign approve 1") == true)
        desk.ask([.made(1, waiting: 2)])
        #expect(try await server.calls(of: "Notify", count: 2)[1].replaces == 1)
        desk.end(1, "once")
        #expect(try await server.calls(of: "CloseNotification", count: 1).map(\.number) == [1])
        #expect(server.calls(of: "GetCapabilities").count == 1)
    }

    @Test func theEndOfTheProxyClosesItsNotifications() async throws {
        let server = try NotificationServer()
        let desk = Desk()
        let asker = try Self.asker(desk, server.bus.address)
        desk.ask([.made(1), .made(2)])
        _ = try await server.calls(of: "Notify", count: 2)
        asker.stop()
        #expect(try await server.calls(of: "CloseNotification", count: 2).map(\.number) == [1, 2])
    }

    @Test func aBusWithoutAServerIsReportedOnceAndALaterServerIsUsed() async throws {
        let bus = try PrivateBus()
        let desk = Desk()
        let asker = try Self.asker(desk, bus.address)
        defer { asker.stop() }
        desk.ask([.made(1)])
        try await waited { !desk.reports.isEmpty }
        let server = try NotificationServer(on: bus)
        _ = try await server.calls(of: "Notify", count: 1)
        server.stop()
        let next = try NotificationServer(on: bus)
        #expect(try await next.calls(of: "Notify", count: 1).map(\.replaces) == [0])
        try Self.person("Press", 1, "deny", at: next)
        try await waited { !desk.answers.isEmpty }
        #expect(desk.reports == ["no program shows notifications on the session bus"])
    }

    @Test func aBusThatEndsIsReportedOnce() async throws {
        let server = try NotificationServer()
        let desk = Desk()
        let asker = try Self.asker(desk, server.bus.address)
        defer { asker.stop() }
        desk.ask([.made(1)])
        _ = try await server.calls(of: "Notify", count: 1)
        server.bus.stop()
        try await waited { !desk.reports.isEmpty }
        #expect(desk.reports == ["there is no session bus for notifications: it has closed the connection"])
    }

    @Test func aBusThatReturnsIsUsed() async throws {
        let folder = try TemporaryFolder("returning")
        let desk = Desk()
        let asker = try Self.asker(desk, "unix:path=\(folder.file("bus"))", pause: .zero)
        defer { asker.stop() }
        desk.ask([.made(1)])
        try await waited { desk.reports.count == 1 }
        var server = try NotificationServer()
        try Self.link(server, at: folder.file("bus"))
        _ = try await server.calls(of: "Notify", count: 1)
        server.bus.stop()
        try await waited { desk.reports.count == 2 }
        server = try NotificationServer()
        try Self.link(server, at: folder.file("bus"))
        _ = try await server.calls(of: "Notify", count: 1)
        try Self.person("Press", 1, "allow-once", at: server)
        try await waited { !desk.answers.isEmpty }
        #expect(desk.answers == [.init(id: 1, answer: .once)])
    }

    private static func link(_ server: NotificationServer, at path: String) throws {
        let socket = try #require(server.bus.address.split(separator: ",").first?.dropFirst("unix:path=".count))
        unlink(path)
        try #require(symlink(String(socket), path) == 0)
    }

    /// libdbus waits for such a bus without end.
    @Test func aBusThatAcceptsNoConnectionDoesNotKeepTheProxyFromItsEnd() throws {
        let socket = try FullSocket()
        let desk = Desk()
        let asker = try Self.asker(desk, socket.address)
        desk.ask([.made(1)])
        desk.end(1, "once")
        asker.stop()
        #expect(desk.answers.isEmpty && desk.reports.isEmpty)
    }

    @Test func anAddressWithoutABusIsReportedOnce() async throws {
        let desk = Desk()
        let asker = try Self.asker(desk, "unix:path=/nonexistent/bus")
        defer { asker.stop() }
        desk.ask([.made(1)])
        try await waited { !desk.reports.isEmpty }
        desk.ask([.made(1), .made(2)])
        asker.stop()
        #expect(desk.reports.count == 1)
    }
}
