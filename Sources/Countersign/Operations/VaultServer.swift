// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import FoundationEssentials

/// A running server of a home that performs operations on its open vault, as a command sees it.
package struct VaultServer: Sendable {
    private let home: Home
    private let offered: Set<String>

    /// Nil if no server of this user is running, its vault is locked, or it performs no operations.
    package init?(of home: Home) {
        guard let status = try? ControlSocket.ask(.status, of: home), !status.isLocked,
            let operations = status.operations
        else { return nil }
        self.home = home
        offered = Set(operations)
    }

    /// Whether the server, which may be of another version, performs the operation.
    package func offers(_ operation: VaultOperation) -> Bool { offered.contains(operation.name) }

    /// Sends an operation with its secret and waits for the result. Returns nil if the server cannot perform it and
    /// has done nothing, for example because the vault has been locked. Throws ``ServerRefusal`` if it fails.
    package func perform(
        _ operation: VaultOperation, secret: Secret?, report: (RenewalProgress) -> Void
    ) throws -> VaultResult? {
        guard let connection = try ControlSocket.connectIfRunning(to: home) else { return nil }
        // A server that refuses the connection says why before it has read the request.
        _ = connection.send(.perform(operation), secret)
        while true {
            guard case .line(let line) = connection.receiveLine(isPatient: true) else { throw noAnswer }
            switch try reply(in: line) {
            case .progress(let progress): report(progress)
            case .opened: throw noAnswer
            case .finished(let result): return result
            case .failed(let diagnostics): throw ServerRefusal(diagnostics: diagnostics)
            case .unavailable: return nil
            }
        }
    }

    /// Makes the server run a proxy for this process's descendants; nil if it cannot.
    package func openProxy(spoolBytes: Int) throws -> ServerProxy? {
        let operation = VaultOperation.runProxy(spoolBytes: spoolBytes)
        guard offers(operation), let connection = try ControlSocket.connectIfRunning(to: home) else { return nil }
        _ = connection.send(.perform(operation), nil)
        guard case .line(let line) = connection.receiveLine(isPatient: true) else { throw noAnswer }
        switch try reply(in: line) {
        case .opened(let address, let token):
            return ServerProxy(address: address, token: Secret(utf8: token), connection: connection)
        case .failed(let diagnostics): throw ServerRefusal(diagnostics: diagnostics)
        case .unavailable: return nil
        case .progress, .finished: throw noAnswer
        }
    }

    private func reply(in line: [UInt8]) throws -> OperationReply {
        let line = Data(line)
        if let reply = try? JSONDecoder().decode(OperationReply.self, from: line) { return reply }
        // The server has not understood the request.
        let refusal = try? JSONDecoder().decode(ControlReply.self, from: line)
        if let reason = refusal?.error { throw CountersignError(.refused, reason) }
        throw noAnswer
    }

    private var noAnswer: CountersignError {
        CountersignError(
            .refused, "the server of \(home.path) ended the connection without a result",
            hint: "the operation may have been performed nevertheless; list what is stored before you repeat it")
    }
}

/// A proxy that a running server runs for this process, until ``end()`` or the end of this process.
package struct ServerProxy: Sendable {
    /// `host:port`.
    package let address: String
    package let token: Secret
    let connection: ControlConnection

    /// Ends the proxy and returns what it could not answer; nil if the server has stopped.
    package func end() -> UnansweredReport? {
        connection.endSending()
        guard case .line(let line) = connection.receiveLine(),
            case .finished(.unanswered(let report))? = try? JSONDecoder().decode(OperationReply.self, from: Data(line))
        else { return nil }
        return report
    }
}
