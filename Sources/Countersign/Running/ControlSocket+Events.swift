// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignHome

extension ControlSocket {
    /// Receives the events of the running server of a home, until it stops or `isWanted`, which is asked each second,
    /// is false. Each line is a JSON object. `replaced` is called when another process has taken the server's place.
    package static func readEvents(
        of home: Home, isWanted: () -> Bool, replaced: () -> Void, _ receive: ([UInt8]) -> Void
    ) throws(CountersignError) {
        var connection = try connect(to: home)
        _ = connection.send(.events, nil)
        var connected = ContinuousClock.now
        var shortConnections = 0
        while isWanted() {
            guard connection.waitForInput(seconds: 1) else { continue }
            if case .line(let line) = connection.receiveLine() {
                receive(line)
                continue
            }
            guard let next = try connectIfRunning(to: home) else {
                throw CountersignError(.notRunning, "the server of \(home.path) has stopped")
            }
            // A server that ends each connection at once is none that another has replaced.
            shortConnections = connected.duration(to: .now) < .seconds(1) ? shortConnections + 1 : 0
            guard shortConnections < 3 else { throw noAnswer(of: home) }
            connection = next
            connected = .now
            _ = connection.send(.events, nil)
            replaced()
        }
    }

    /// Something listens on the socket, and is no server, or does not work.
    static func noAnswer(of home: Home) -> CountersignError {
        CountersignError(
            .refused, "the server of \(home.path) did not answer",
            hint: "`fuser \(ShellWord.quoted(home.controlSocket.path))` shows its process; end it, and run "
                + "`countersign serve` again")
    }
}
