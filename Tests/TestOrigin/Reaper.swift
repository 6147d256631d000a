// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Kills the processes and deletes the folders that are left when the test run ends, even if it crashes. A shell reads
/// notes from a pipe and cleans up when the pipe closes.
final class Reaper: Sendable {
    static let shared = Reaper()

    private static let script = """
        pids=' '; folders=' '
        while read -r what value; do
            case $what in
            start) pids="$pids$value " ;;
            end) pids="${pids%% $value *} ${pids#* $value }" ;;
            folder) folders="$folders$value " ;;
            esac
        done
        for pid in $pids; do kill -9 $pid; done
        for folder in $folders; do rm -rf -- "$folder"; done
        """

    private let notes: Mutex<Int32>

    private init() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            notes = Mutex(-1)
            return
        }
        Self.keepFromChildren()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // It lives as long as the tests, and must not keep their descriptors open.
        actions.closeAllButTheFirstThree()
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        var pid: pid_t = 0
        let arguments = CStrings(["sh", "-c", Self.script])
        let environment = CStrings(["PATH=/usr/bin:/bin"])
        posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments.pointers, environment.pointers)
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
        close(ends[0])
        notes = Mutex(ends[1])
    }

    /// Sets close-on-exec on every open descriptor. Those that the harness opens later have it from the start.
    private static func keepFromChildren() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            if let descriptor = Int32(name), descriptor > 2 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        }
    }

    func started(_ pid: pid_t) { note("start \(pid)\n") }

    func ended(_ pid: pid_t) { note("end \(pid)\n") }

    func owns(folder: String) { note("folder \(folder)\n") }

    private func note(_ line: String) {
        notes.withLock { descriptor in
            let bytes = Array(line.utf8)
            _ = write(descriptor, bytes, bytes.count)
        }
    }
}

/// A NULL-terminated array of C strings for `posix_spawn`, freed with the value that owns it.
final class CStrings {
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ strings: [String]) {
        count = strings.count
        pointers = .allocate(capacity: count + 1)
        for (index, string) in strings.enumerated() { pointers[index] = strdup(string) }
        pointers[count] = nil
    }

    deinit {
        for index in 0..<count { free(pointers[index]) }
        pointers.deallocate()
    }
}
