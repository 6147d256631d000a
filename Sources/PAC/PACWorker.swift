// SPDX-License-Identifier: Apache-2.0

import CountersignCJavaScriptCore
import CountersignCLinux
import Glibc

/// The process that runs scripts: `countersign pac-worker [ENGINE]`. It loads the engine, gives up all its rights, and
/// then answers one message after the other on its standard input, a socket.
package enum PACWorker {
    /// The statuses with which the process ends.
    enum ExitStatus {
        static let done: Int32 = 0
        static let noSocket: Int32 = 64
        static let noLibrary: Int32 = 10
        static let cannotConfine: Int32 = 11
        static let timeIsUp = Int32(CSN_TIME_IS_UP)
        /// The engine ran out of memory at a point at which it cannot report that.
        static let fatal: Int32 = 13
        static let malformedMessage: Int32 = 14
        /// The engine ended itself.
        static let fault = Int32(CSN_JSC_FAULT)
        /// The engine needs more than a confined process has.
        static let notConfinable: Int32 = 16
    }

    /// The word on the command line.
    package static let command = "pac-worker"

    private static let socket: Int32 = 0

    /// Does not return. `kind` is the engine; nil for the first one that is installed.
    package static func run(_ kind: EngineKind?) -> Never {
        var status = stat()
        guard fstat(socket, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { exit(ExitStatus.noSocket) }
        // Reads the time zone's file while that is still possible. Without a name for it, glibc would look again
        // whether the file has changed.
        setenv("TZ", ":/etc/localtime", 0)
        tzset()
        let library: EngineLibrary
        do throws(EngineLibrary.Failure) {
            library = try EngineLibrary.open(kind)
        } catch {
            _exit(error == .notInstalled ? ExitStatus.noLibrary : ExitStatus.notConfinable)
        }
        guard var engine = library.engine() else { exit(ExitStatus.fatal) }
        guard csn_prepare_timer() == 0, csn_confine(UInt(PACLimits.addressSpaceBytes), library.denial) == 0 else {
            exit(ExitStatus.cannotConfine)
        }
        send(WorkerMessage(.ready))
        while let message = receive() {
            start()
            switch message.kind {
            case .load:
                guard let end = message.content.firstIndex(of: 0) else { exit(ExitStatus.malformedMessage) }
                guard let fresh = library.engine() else { exit(ExitStatus.fatal) }
                let outcome = fresh.load(
                    Array(message.content[(end + 1)...]), request: Array(message.content[..<end]))
                stop()
                engine = fresh
                send(WorkerMessage(reportOf: outcome))
            case .find:
                let result = engine.answer(message.content)
                stop()
                switch result {
                case .success(let reply): send(WorkerMessage(.reply, reply))
                case .failure(let fault): send(WorkerMessage(.fault, fault.content))
                }
            case .ready, .loaded, .reply, .fault:
                _exit(ExitStatus.malformedMessage)
            }
        }
        _exit(ExitStatus.done)
    }

    private static func start() {
        csn_start_timer(Int32(PACLimits.callTime / Duration.milliseconds(1)))
    }

    private static func stop() { csn_start_timer(0) }

    // MARK: The socket

    private static func receive() -> WorkerMessage? {
        guard let start = read(WorkerMessage.headerBytes) else { return nil }
        guard let header = WorkerMessage.header(start), let content = read(header.count) else {
            _exit(ExitStatus.malformedMessage)
        }
        return WorkerMessage(header.kind, content)
    }

    /// Nil if the socket ends before.
    private static func read(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var position = 0
        while position < count {
            let done = bytes.withUnsafeMutableBytes { buffer in
                Glibc.read(socket, buffer.baseAddress.map { $0 + position }, count - position)
            }
            if done < 0, errno == EINTR { continue }
            guard done > 0 else { return nil }
            position += done
        }
        return bytes
    }

    private static func send(_ message: WorkerMessage) {
        let bytes = message.bytes
        var position = 0
        while position < bytes.count {
            let done = bytes.withUnsafeBytes { buffer in
                write(socket, buffer.baseAddress.map { $0 + position }, bytes.count - position)
            }
            if done < 0, errno == EINTR { continue }
            guard done > 0 else { _exit(ExitStatus.done) }
            position += done
        }
    }
}

extension WorkerMessage {
    /// The result of loading a script.
    init(reportOf loading: ScriptLoading) {
        switch loading {
        case .loaded: self.init(.loaded)
        case .needs(let reply): self.init(.reply, reply)
        case .fault(let fault): self.init(.fault, fault.content)
        }
    }
}
