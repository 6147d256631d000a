// SPDX-License-Identifier: Apache-2.0

import Glibc

extension Home {
    /// Runs `body` while no other process that calls this for the same folder does. Creates the folder with mode 0755
    /// if it is missing.
    package func withLock<Result>(on folder: String, _ body: () throws -> Result) throws -> Result {
        try prepare()
        let path = file(folder).path
        try HomeFile.makeFolder(path, mode: 0o755)
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CountersignError.system(errno, "cannot open the folder \(path)") }
        // Unlocked explicitly: a child process has a copy of the descriptor until it calls `exec`, which would keep the
        // lock.
        defer {
            flock(descriptor, LOCK_UN)
            close(descriptor)
        }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw CountersignError.system(errno, "cannot lock the folder \(path)") }
        }
        return try body()
    }
}
