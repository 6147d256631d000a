// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Dispatch
import Glibc
import Synchronization

/// A running `countersign-webview`. Standard input is a socket, so that a write to a program that has ended raises no
/// signal; standard output is a pipe.
final class WebViewProcess: Sendable {
    /// The output of the program.
    enum Output: Equatable, Sendable {
        /// Without its end.
        case line([UInt8])
        case end
        /// The line is longer than ``WebViewEvent/lineBytes``.
        case tooLong
    }

    private let process: AgentProcess
    private let input: Int32
    private let output: Int32
    private let reader = DispatchQueue(label: "countersign.webview")
    /// The bytes after the last line. Used on the queue only.
    private let pending = Mutex<[UInt8]>([])
    /// Whether the program may still be signalled. Its number is its own until ``end()`` has waited for it.
    private let isRunning = Mutex(true)

    /// Starts `words[0]`, which is a path.
    init(_ words: [String], environment: [String: String]) throws(SignInError) {
        var (sockets, pipes): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &sockets) == 0 else { throw Self.system("cannot create a socket") }
        guard pipe(&pipes) == 0 else {
            for end in sockets { close(end) }
            throw Self.system("cannot create a pipe")
        }
        for end in pipes { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer {
            close(sockets[1])
            close(pipes[1])
        }
        do throws(SignInError) {
            process = try AgentProcess(words, environment: environment, input: sockets[1], output: pipes[1])
        } catch {
            close(sockets[0])
            close(pipes[0])
            throw error
        }
        (input, output) = (sockets[0], pipes[0])
    }

    deinit {
        close(input)
        close(output)
    }

    /// Sends a command. Does not wait: a program that does not read its commands, or has ended, is killed, which ends
    /// its output.
    func send(_ command: WebViewCommand) {
        let count = command.line.withBytes { bytes in
            Glibc.send(input, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
                == bytes.count
        }
        if !count { kill() }
    }

    /// Reads the next line. Not to be called again before it has returned.
    func next() async -> Output {
        await withCheckedContinuation { continuation in
            reader.async { [self] in continuation.resume(returning: pending.withLock { read(&$0) }) }
        }
    }

    /// Kills the program unless it has ended in the meantime.
    func kill(after limit: DispatchTimeInterval) {
        DispatchQueue(label: "countersign.webview.limit").asyncAfter(deadline: .now() + limit) { [weak self] in
            self?.kill()
        }
    }

    /// Kills the program, and everything that it has started.
    func kill() {
        isRunning.withLock { if $0 { _ = Glibc.kill(-process.identifier, SIGKILL) } }
    }

    /// Kills the program if it has not ended, and returns its status, or 128 plus the signal that ended it.
    func end() async -> Int32? {
        isRunning.withLock { isRunning in
            if isRunning { _ = Glibc.kill(-process.identifier, SIGKILL) }
            isRunning = false
        }
        // Not in the task that may be cancelled.
        return await Task { [process] in await process.status() }.value
    }

    private func read(_ pending: inout [UInt8]) -> Output {
        var searched = 0
        while true {
            if let end = pending[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(pending[..<end])
                pending.removeSubrange(...end)
                return .line(line)
            }
            guard pending.count <= WebViewEvent.lineBytes else { return .tooLong }
            searched = pending.count
            var chunk = [UInt8](repeating: 0, count: 64 << 10)
            let count = Glibc.read(output, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return .end }
            pending += chunk[..<count]
        }
    }

    private static func system(_ attempt: String) -> SignInError {
        SignInError(.environment, "\(attempt): \(String(cString: strerror(errno)))")
    }
}
