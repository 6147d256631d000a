// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The processes of a browser with a profile of its own: those with the profile's path among their arguments, and those
/// of the session in which the first one was started.
struct BrowserProcesses {
    let profile: String
    /// Nil if it is not known.
    var session: pid_t?

    private static let argumentsBytes = 64 << 10

    /// Whether one of them is running. True if /proc cannot be read.
    var areRunning: Bool {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc") else { return true }
        return names.contains { name in pid_t(name).map(isRunning) ?? false }
    }

    /// Returns when none of them is running, or when the task is cancelled.
    func end() async {
        while !Task.isCancelled, areRunning { try? await Task.sleep(for: .milliseconds(500)) }
    }

    private func isRunning(_ process: pid_t) -> Bool {
        let arguments = Self.arguments(of: process)
        // A zombie process has none.
        guard !arguments.isEmpty else { return false }
        return session.map { getsid(process) == $0 } == true || arguments.firstRange(of: profile.utf8) != nil
    }

    private static func arguments(of process: pid_t) -> [UInt8] {
        let file = open("/proc/\(process)/cmdline", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: argumentsBytes)
        let count = read(file, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }
}
