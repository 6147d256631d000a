// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A session bus of its own (dbus-daemon), which is unknown to all other programs.
package final class PrivateBus: Sendable {
    /// The value of `DBUS_SESSION_BUS_ADDRESS`.
    package let address: String
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init() throws {
        folder = try TemporaryFolder("bus")
        process = try ChildProcess(
            Tool.path("dbus-daemon"),
            ["--session", "--nofork", "--print-address=1", "--address=unix:path=\(folder.file("socket"))"],
            capture: folder.file("daemon"))
        address = try "unix:" + process.line(after: "unix:")
    }

    package func stop() { process.stop() }
}

/// A stand-in for the identity broker (python3-dbusmock); Servers/identity_broker.py describes its replies.
package final class IdentityBroker: Sendable {
    package let bus: PrivateBus
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// `replies` are the replies of the methods, by their names.
    package init(_ replies: [String: any Sendable] = [:], on bus: PrivateBus? = nil) throws {
        self.bus = try bus ?? PrivateBus()
        folder = try TemporaryFolder("broker")
        try Self.write(replies, to: folder)
        process = try ChildProcess(
            // The packages of Debian.
            "/usr/bin/python3",
            [
                "-m", "dbusmock", "--session", "--template", Tool.server("identity_broker.py"), "--parameters",
                "{\"control\": \"\(folder.file("control"))\", \"log\": \"\(folder.file("log"))\"}",
            ], environment: ["DBUS_SESSION_BUS_ADDRESS": self.bus.address], capture: folder.file("broker"))
        _ = try process.line(after: "ready")
    }

    package var address: String { bus.address }

    package func stop() { process.stop() }

    /// Replaces the replies from the next call on.
    package func change(_ replies: [String: any Sendable]) throws { try Self.write(replies, to: folder) }

    private static func write(_ replies: [String: any Sendable], to folder: TemporaryFolder) throws {
        let data = try JSONSerialization.data(withJSONObject: replies, options: [.withoutEscapingSlashes])
        try folder.write("control.new", String(decoding: data, as: UTF8.self))
        guard rename(folder.file("control.new"), folder.file("control")) == 0 else {
            throw HarnessError("the broker's replies cannot be written")
        }
    }

    /// A call that the broker has received.
    package struct Call {
        package let method: String
        package let version: String
        package let correlation: String
        package let request: [String: Any]

        /// `authParameters`
        package var parameters: [String: Any] { request["authParameters"] as? [String: Any] ?? [:] }
    }

    package var calls: [Call] {
        TextFile.lines(folder.file("log")).compactMap { line in
            guard let entry = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                let method = entry["method"] as? String, let version = entry["version"] as? String,
                let correlation = entry["correlation"] as? String, let request = entry["request"] as? [String: Any]
            else { return nil }
            return Call(method: method, version: version, correlation: correlation, request: request)
        }
    }

    /// An account as the broker lists it.
    package static func account(_ username: String, home: String = "uid.utid") -> [String: any Sendable] {
        [
            "environment": "login.windows.net", "givenName": "J", "homeAccountId": home, "localAccountId": "uid",
            "name": "J. Doe", "passwordExpiry": 0, "realm": "utid", "username": username, "later": ["kept": true],
        ]
    }

    /// The reply of `acquireTokenSilently`.
    package static func token(
        _ token: String, expires: Int64, more: [String: any Sendable] = [:]
    ) -> [String: any Sendable] {
        let response: [String: any Sendable] = [
            "accessToken": token, "accessTokenType": 0, "clientInfo": "eyJ1aWQiOiJ1aWQiLCJ1dGlkIjoidXRpZCJ9",
            "expiresOn": expires * 1000, "extendedExpiresOn": expires, "grantedScopes": ["api", "openid"],
            "idToken": "",
        ]
        return ["json": ["brokerTokenResponse": response.merging(more) { _, new in new }] as [String: any Sendable]]
    }
}
