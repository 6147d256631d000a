// SPDX-License-Identifier: Apache-2.0

import Foundation

/// GNOME Keyring on a bus and in a folder of its own, with secret-tool to look into it.
package final class KeyringServer: Sendable {
    package let bus: PrivateBus
    private let folder: TemporaryFolder
    private let process: ChildProcess

    /// A keyring with an unlocked default collection or, with `isLocked`, with one whose password nobody types.
    package init(isLocked: Bool = false, folder kept: TemporaryFolder? = nil) throws {
        bus = try PrivateBus()
        folder = try kept ?? TemporaryFolder("keyring")
        let password = try folder.write("password", "a keyring's password")
        process = try ChildProcess(
            Tool.path("gnome-keyring-daemon"),
            ["--foreground", "--components=secrets"] + (isLocked ? [] : ["--unlock"]),
            environment: [
                "DBUS_SESSION_BUS_ADDRESS": bus.address, "HOME": folder.path, "XDG_DATA_HOME": folder.path,
                "XDG_RUNTIME_DIR": folder.path,
            ], input: isLocked ? nil : password, capture: folder.file("daemon"))
        guard try poll({ try hasService() ? true : nil }) == true else {
            throw HarnessError("the keyring did not start: \(process.errorOutput)")
        }
    }

    /// What a program needs to reach it.
    package var environment: [String: String] { ["DBUS_SESSION_BUS_ADDRESS": bus.address] }

    /// The folder, for another server that continues with its contents.
    package var contents: TemporaryFolder { folder }

    package func stop() {
        process.stop()
        bus.stop()
    }

    /// What secret-tool (libsecret) finds.
    package func lookUp(_ attributes: String...) throws -> String {
        try Command.run(Tool.path("secret-tool"), ["lookup"] + attributes, environment: environment, in: folder).output
    }

    private func hasService() throws -> Bool {
        try Command.run(
            Tool.path("dbus-send"),
            [
                "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus",
                "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets",
            ], environment: environment, in: folder
        ).output.contains("true")
    }
}
