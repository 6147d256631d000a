// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import Glibc

/// How the worker is started: the path of `countersign`, whose hidden command it is.
package struct WorkerProgram: Hashable, Sendable {
    package let path: String
    /// Nil for the first one that is installed and can be confined.
    package let engine: EngineKind?

    package init(path: String, engine: EngineKind? = nil) {
        self.path = path
        self.engine = engine
    }

    /// This executable, if it is `countersign`.
    package static var ownExecutable: WorkerProgram { WorkerProgram(path: "/proc/self/exe") }
}

/// A running worker. It is killed with the value.
struct WorkerProcess: ~Copyable {
    let pid: pid_t
    private let socket: Int32

    private init(pid: pid_t, socket: Int32) {
        self.pid = pid
        self.socket = socket
    }

    /// Starts the worker and waits until it has given up its rights. JavaScriptCore may be installed and yet not start,
    /// for example if the machine does not let a process reserve as much memory.
    static func start(_ program: WorkerProgram) throws(PACError) -> WorkerProcess {
        do throws(PACError) {
            return try startOnce(program)
        } catch {
            guard program.engine == nil, error.code != .noLibrary else { throw error }
            let other = WorkerProgram(path: program.path, engine: .duktape)
            guard let process = try? startOnce(other) else { throw error }
            return process
        }
    }

    private static func startOnce(_ program: WorkerProgram) throws(PACError) -> WorkerProcess {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw cannotStart(program, String(cString: strerror(errno)))
        }
        let started = spawn(program, ends[1])
        close(ends[1])
        guard case .success(let pid) = started else {
            close(ends[0])
            guard case .failure(let failure) = started else { throw cannotStart(program, "unknown") }
            throw cannotStart(program, String(cString: strerror(failure.number)))
        }
        let process = WorkerProcess(pid: pid, socket: ends[0])
        do throws(PACError) {
            guard try process.exchange(nil).kind == .ready else { throw cannotStart(program, "not a worker") }
        } catch {
            guard error.code == .crashed else { throw error }
            throw cannotStart(program, error.detail)
        }
        return process
    }

    deinit {
        close(socket)
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }

    /// Sends a message, if any, and returns the next one. After an error the worker can no longer be used.
    func exchange(_ message: WorkerMessage?) throws(PACError) -> WorkerMessage {
        let deadline = ContinuousClock.now + PACLimits.wallTime
        if let message { try send(message.bytes, deadline) }
        let start = try read(WorkerMessage.headerBytes, deadline)
        guard let header = WorkerMessage.header(start), header.count <= 65536 else {
            throw PACError(.crashed, "the script's process sent something else than a reply")
        }
        return WorkerMessage(header.kind, try read(header.count, deadline))
    }

    // MARK: Start

    private struct Failure: Error {
        let number: Int32
    }

    private static func cannotStart(_ program: WorkerProgram, _ reason: String) -> PACError {
        PACError(.cannotStart, "the process for scripts, \(program.path), cannot be started: \(reason)")
    }

    /// The child has no descriptor but the socket, and no variable of the environment but those that it needs to start.
    private static func spawn(_ program: WorkerProgram, _ socket: Int32) -> Result<pid_t, Failure> {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, socket, 0)
        for output: Int32 in [1, 2] { posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0) }
        csn_close_from(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var variables: [UnsafeMutablePointer<CChar>?] = [strdup("SWIFT_BACKTRACE=enable=no")]
        for name in ["TZ", "LD_LIBRARY_PATH"] {
            if let value = getenv(name) { variables.append(strdup("\(name)=\(String(cString: value))")) }
        }
        variables.append(nil)
        var arguments = [strdup("countersign"), strdup(PACWorker.command)]
        if let engine = program.engine { arguments.append(strdup(engine.rawValue)) }
        arguments.append(nil)
        defer { (arguments + variables).forEach { free($0) } }
        var pid: pid_t = 0
        let failure = posix_spawn(&pid, program.path, &actions, &attributes, &arguments, &variables)
        return failure == 0 ? .success(pid) : .failure(Failure(number: failure))
    }

    // MARK: The socket

    private func send(_ bytes: [UInt8], _ deadline: ContinuousClock.Instant) throws(PACError) {
        var position = 0
        while position < bytes.count {
            let done = bytes.withUnsafeBytes { buffer in
                Glibc.send(
                    socket, buffer.baseAddress.map { $0 + position }, bytes.count - position,
                    Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if done >= 0 {
                position += done
            } else if errno == EAGAIN {
                try wait(Int16(POLLOUT), deadline)
            } else if errno != EINTR {
                throw death()
            }
        }
    }

    private func read(_ count: Int, _ deadline: ContinuousClock.Instant) throws(PACError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var position = 0
        while position < count {
            let done = bytes.withUnsafeMutableBytes { buffer in
                recv(
                    socket, buffer.baseAddress.map { $0 + position }, count - position, Int32(MSG_DONTWAIT))
            }
            if done > 0 {
                position += done
            } else if done < 0, errno == EAGAIN {
                try wait(Int16(POLLIN), deadline)
            } else if done == 0 || errno != EINTR {
                throw death()
            }
        }
        return bytes
    }

    private func wait(_ events: Int16, _ deadline: ContinuousClock.Instant) throws(PACError) {
        let left = (deadline - ContinuousClock.now) / Duration.milliseconds(1)
        var waiting = pollfd(fd: socket, events: events, revents: 0)
        guard left > 0, poll(&waiting, 1, Int32(left.rounded(.up))) != 0 else {
            throw PACError(.timedOut, "the script's process did not reply within \(PACLimits.wallTime)")
        }
    }

    /// Why the worker has closed its end. It can do that only by ending.
    private func death() -> PACError {
        var info = siginfo_t()
        // WNOWAIT: `deinit` collects it.
        while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        let status = csn_child_status(&info)
        guard info.si_code == CLD_EXITED else {
            let reason = status == SIGSYS ? "tried something that it may not do" : "was killed by signal \(status)"
            return PACError(.crashed, "the script's process \(reason)")
        }
        switch status {
        case PACWorker.ExitStatus.timeIsUp: return .timedOut
        case PACWorker.ExitStatus.fatal: return .outOfMemory
        case PACWorker.ExitStatus.noLibrary: return .noLibrary
        case PACWorker.ExitStatus.cannotConfine:
            return PACError(
                .cannotConfine, "the process for scripts cannot give up its rights",
                hint: "scripts need a Linux kernel with seccomp, on x86-64 or ARM64")
        case PACWorker.ExitStatus.notConfinable:
            return PACError(.cannotConfine, "the engine for scripts cannot run in a process without rights")
        default: return PACError(.crashed, "the script's process ended with status \(status)")
        }
    }
}
