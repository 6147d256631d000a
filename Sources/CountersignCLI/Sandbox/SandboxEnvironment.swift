// SPDX-License-Identifier: Apache-2.0

/// The variables of a command in a sandbox.
enum SandboxEnvironment {
    /// They lead to agents, tickets and sockets of the person's session, or to folders that are not there. Those of the
    /// service manager would let the command speak for this process.
    private static let removed: Set<String> = [
        "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL",
        "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DBUS_STARTER_ADDRESS", "KRB5CCNAME", "KRB5_KTNAME",
        "KRB5_CLIENT_KTNAME", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "PULSE_SERVER",
        "DOCKER_HOST", "CONTAINER_HOST", "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
        "CREDENTIALS_DIRECTORY", "TMPDIR", "TMP", "TEMP", "OLDPWD",
    ]

    /// The variables by which a client's configuration is found. Copies of the person's, which are in a folder that the
    /// command does not see, must not be made for it: they may contain passwords.
    private static let configuration: Set<String> = [
        "HOME", "XDG_CONFIG_HOME", "WGETRC", "CURL_HOME", "HGRCPATH", "APT_CONFIG",
    ]

    /// `variables` without those that are not for the command. Ours have the values of proxy variables that were
    /// replaced.
    static func visible(_ variables: [String: String], in folder: String) -> [String: String] {
        var visible = variables.filter { !removed.contains($0.key) && !$0.key.hasPrefix("COUNTERSIGN_") }
        visible["PWD"] = folder
        return visible
    }

    /// The environment for which the files of clients are written.
    static func withoutConfiguration(_ variables: [String: String]) -> [String: String] {
        // Also the values that `countersign env` has replaced.
        variables.filter { variable in
            !configuration.contains { variable.key == $0 || variable.key == "COUNTERSIGN_SAVED_\($0)" }
        }
    }
}
