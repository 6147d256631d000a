// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A stand-in for the desktop's notification server; Servers/notification_server.py describes its person.
package final class NotificationServer: Sendable {
    package let bus: PrivateBus
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ capabilities: [String] = ["actions", "body", "body-markup"], on bus: PrivateBus? = nil) throws {
        self.bus = try bus ?? PrivateBus()
        folder = try TemporaryFolder("notifications")
        process = try ChildProcess(
            // The packages of Debian.
            "/usr/bin/python3",
            [Tool.server("notification_server.py"), folder.file("log")] + capabilities,
            environment: ["DBUS_SESSION_BUS_ADDRESS": self.bus.address], capture: folder.file("server"))
        _ = try process.line(after: "ready")
    }

    package func stop() { process.stop() }

    /// The person presses a button of a notification.
    package func press(_ key: String, of number: UInt32) throws {
        let done = try Command.run(
            Tool.path("dbus-send"),
            [
                "--session", "--print-reply", "--dest=org.freedesktop.Notifications", "/org/freedesktop/Notifications",
                "test.Person.Press", "uint32:\(number)", "string:\(key)",
            ], environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address], in: folder)
        guard done.status == 0 else { throw HarnessError("dbus-send: \(done.said)") }
    }

    /// A call that the server has received.
    package struct Call: Decodable, Equatable, Sendable {
        package let call: String
        package let number: UInt32?
        package let program: String?
        package let replaces: UInt32?
        package let summary: String?
        package let body: String?
        package let actions: [String]?
        package let urgency: UInt8?
        package let urgencyType: String?
        package let expires: Int32?
    }

    package var calls: [Call] {
        TextFile.lines(folder.file("log")).compactMap { try? JSONDecoder().decode(Call.self, from: Data($0.utf8)) }
    }

    /// Those of one method.
    package func calls(of method: String) -> [Call] { calls.filter { $0.call == method } }

    /// Waits until the method was called so often, and returns these calls.
    package func calls(of method: String, count: Int) async throws -> [Call] {
        let end = ContinuousClock.now + .seconds(60)
        while true {
            let calls = calls(of: method)
            if calls.count >= count { return calls }
            guard ContinuousClock.now < end else {
                throw HarnessError("\(method) was called \(calls.count) times, not \(count)")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
