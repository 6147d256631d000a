// SPDX-License-Identifier: Apache-2.0

package import CountersignHome

extension ControlSocket {
    /// Receives the events of the running server of a home, until it stops or `isWanted`, which is asked each second,
    /// is false. Each line is a JSON object. `replaced` is called when another process has taken the server's place.
    package static func readEvents(
        of home: Home, isWanted: () -> Bool, replaced: () -> Void, _ receive: ([UInt8]) -> Void
    ) throws(CountersignError) {
        var connection = try connect(to: home)
        _ = connection.send(.events, nil)
        while isWanted() {
            guard connection.waitForInput(seconds: 1) else { continue }
            if case .line(let line) = connection.receiveLine() {
                receive(line)
                continue
            }
            guard let next = try connectIfRunning(to: home) else {
                throw CountersignError(.notRunning, "the server of \(home.path) has stopped")
            }
            connection = next
            _ = connection.send(.events, nil)
            replaced()
        }
    }
}
