// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Dispatch
import FoundationEssentials
import Glibc

/// The control socket of a home, `run/control.sock`. A running server accepts commands for its vault on it, from
/// processes of its own user only.
package final class ControlSocket: Sendable {
    private let path: String
    private let descriptor: Int32
    private let answer: @Sendable (ControlRequest) -> ControlReply

    /// Listens until ``stop()``. Calls `answer` on a separate thread. Throws `environment` if another server of this
    /// home is listening.
    package init(home: Home, answer: @escaping @Sendable (ControlRequest) -> ControlReply) throws(CountersignError) {
        path = home.controlSocket.path
        try home.prepare()
        try HomeFile.makeFolder(HomeFile.folder(of: path), mode: 0o700)
        if try LocalSocket.connect(to: path) != nil {
            throw CountersignError(
                .environment, "another server of this home is listening on \(path)",
                hint: "`countersign vault lock` and `unlock` reach only that server")
        }
        descriptor = try LocalSocket.listen(at: path)
        self.answer = answer
        DispatchQueue(label: "countersign.control").async { [self] in acceptUntilStopped() }
    }

    package func stop() {
        _ = unlink(path)
        // Makes `accept` return; its thread closes the socket.
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

    // MARK: Client

    /// Sends a request to the running server of a home. Throws `notRunning` if there is none, and `refused` with the
    /// server's reason.
    package static func ask(_ request: ControlRequest, of home: Home) throws -> ControlReply {
        guard let connection = try LocalSocket.connect(to: home.controlSocket.path) else {
            throw CountersignError(
                .notRunning, "no server of \(home.path) is running",
                hint: "start one with `countersign serve`")
        }
        guard connection.send(line: Array(try JSONEncoder().encode(request))), let line = connection.receiveLine(),
            let reply = try? JSONDecoder().decode(ControlReply.self, from: Data(line))
        else {
            throw CountersignError(.refused, "the server of \(home.path) did not answer")
        }
        if let error = reply.error {
            throw CountersignError(
                reply.isWrongPassphrase == true ? .wrongPassphrase : .refused, error, hint: reply.hint)
        }
        return reply
    }
}
