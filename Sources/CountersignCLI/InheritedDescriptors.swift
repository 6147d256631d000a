// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The open files that this process began with: those that a command in its place would have, and no others.
///
/// SwiftNIO opens sockets without close-on-exec, so that a command would hold on to the proxy's doors and to its authenticated
/// connections.
struct InheritedDescriptors: Sendable {
    private let numbers: Set<Int32>

    /// As they are now: to be called before anything is opened.
    init() {
        // The folder that is listed is open meanwhile, and closed afterwards.
        numbers = Self.listed().filter { fcntl($0, F_GETFD) >= 0 }
    }

    /// Leaves a child nothing else than these. Others may open some more until it starts: it closes a range beyond, too.
    func restrict(_ actions: inout posix_spawn_file_actions_t) {
        let highest = max(2, Self.listed().max() ?? 2)
        for descriptor in 3...highest + 64 where !numbers.contains(descriptor) {
            posix_spawn_file_actions_addclose(&actions, descriptor)
        }
    }

    private static func listed() -> Set<Int32> {
        Set(((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).compactMap { Int32($0) })
    }
}
