// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Dispatch
import FoundationEssentials
import Glibc

/// `run/control.sock` of a home: where a running server takes orders about its vault, from processes of its own user only.
package final class ControlSocket: Sendable {
    private let path: String
    private let descriptor: Int32
    private let answer: @Sendable (ControlRequest) -> ControlReply

    /// Listens until ``stop()``. `answer` is called on a thread of its own. Throws `environment` where another server of this
    /// home listens already.
    package init(home: Home, answer: @escaping @Sendable (ControlRequest) -> ControlReply) throws(CountersignError) {
        path = home.controlSocket.path
        try home.prepare()
        try HomeFile.makeFolder(HomeFile.folder(of: path), mode: 0o700)
        if try LocalSocket.connect(to: path) != nil {
            throw CountersignError(
                .environment, "another server of this home listens on \(path)",
                hint: "`countersign vault lock` and `unlock` reach that one only")
        }
        descriptor = try LocalSocket.listen(at: path)
        self.answer = answer
        DispatchQueue(label: "countersign.control").async { [self] in acceptUntilStopped() }
    }

    package func stop() {
        _ = unlink(path)
        // Wakes the thread, which closes it.
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    private func acceptUntilStopped() {
        defer { close(descriptor) }
        while true {
            let connection = accept(descriptor, nil, nil)
            if connection < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                if errno == EMFILE || errno == ENFILE {
                    sleep(1)
                    continue
                }
                return
            }
            _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
            serve(LocalSocket(adopting: connection))
        }
    }

    private func serve(_ connection: consuming LocalSocket) {
        guard connection.peerUser == getuid() else { return }
        while let line = connection.receiveLine() {
            guard let request = try? JSONDecoder().decode(ControlRequest.self, from: Data(line)),
                let reply = try? JSONEncoder().encode(answer(request)), connection.send(line: Array(reply))
            else { return }
        }
    }

    // MARK: The other end

    /// Asks the running server of a home. Throws `notRunning` where there is none, and `refused` with its reason.
    package static func ask(_ request: ControlRequest, of home: Home) throws -> ControlReply {
        guard let connection = try LocalSocket.connect(to: home.controlSocket.path) else {
            throw CountersignError(
                .notRunning, "no server of \(home.path) is running",
                hint: "start one with `countersign serve`; a vault without a server is shut")
        }
        guard connection.send(line: Array(try JSONEncoder().encode(request))), let line = connection.receiveLine(),
            let reply = try? JSONDecoder().decode(ControlReply.self, from: Data(line))
        else {
            throw CountersignError(.refused, "the server of \(home.path) did not answer")
        }
        if let error = reply.error { throw CountersignError(.refused, error, hint: reply.hint) }
        return reply
    }
}
