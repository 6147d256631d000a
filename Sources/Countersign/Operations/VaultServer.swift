// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignHome
import FoundationEssentials

/// A running server of a home that performs operations on its open vault: the command's end.
package struct VaultServer: Sendable {
    private let home: Home
    private let offered: Set<String>
    private let kerberos: KerberosEnvironment?

    /// Nil if no server of this user is running, its vault is locked, or it performs no operations. `failed` receives
    /// the reason if there is a server that does not answer.
    package init?(of home: Home, failed: (String) -> Void = { _ in }) {
        let status: ControlReply
        do {
            status = try ControlSocket.ask(.status, of: home)
        } catch {
            if let error = error as? CountersignError, error.code == .refused { failed(error.detail) }
            return nil
        }
        guard !status.isLocked, let operations = status.operations else { return nil }
        self.home = home
        offered = Set(operations)
        kerberos = status.kerberos
    }

    /// Why the server may not use the Kerberos tickets that this process would use, as a clause; nil if it uses them.
    package var otherTickets: String? {
        guard let kerberos else {
            return "`countersign serve` is of a version that does not report its Kerberos tickets"
        }
        let names = KerberosEnvironment.ofThisProcess.differences(from: kerberos)
        guard !names.isEmpty else { return nil }
        return "`countersign serve` runs with another \(names.joined(separator: ", "))"
    }

    /// Whether the server, which may be of another version, performs the operation.
    package func offers<Operation: VaultOperation>(_ type: Operation.Type) -> Bool { offered.contains(type.name) }

    /// Sends an operation with its secret and waits for the result. Returns nil if the server cannot perform it and
    /// has done nothing, for example because the vault has been locked; `declined` receives the reason if the user
    /// does not know it. Throws ``ServerRefusal`` if it fails, and `refused` if the dialogue, which is checked once per
    /// second, is abandoned.
    package func perform<Operation: VaultOperation>(
        _ operation: Operation, secret: Secret? = nil, _ dialogue: OperationDialogue = .silent,
        declined: (String) -> Void = { _ in }
    ) throws -> Operation.Result? {
        guard let connection = try ControlSocket.connectIfRunning(to: home) else { return nil }
        // A server that refuses the connection sends the reason before it has read the request.
        _ = connection.send(.perform(operation), secret)
        var hasPage = true
        let check = {
            if hasPage, let end = dialogue.pageEnd() {
                hasPage = false
                _ = connection.send(.pageEnded(end), nil)
            }
            return dialogue.isAbandoned?() == true
        }
        while true {
            let reply: OperationReply<Operation.Result> = try nextReply(on: connection, isAbandoned: check)
            switch reply {
            case .progress(let progress): dialogue.report(progress)
            case .opened: throw noAnswer
            case .finished(let result): return result
            case .failed(let diagnostics): throw ServerRefusal(diagnostics: diagnostics)
            case .unavailable: return nil
            case .busy(let count):
                declined(Self.busy(count))
                return nil
            }
        }
    }

    /// Makes the server run a proxy for this process's descendants; nil if it cannot. `declined` is as in
    /// ``perform(_:secret:_:declined:)``.
    package func openProxy(spoolBytes: Int, declined: (String) -> Void = { _ in }) throws -> ServerProxy? {
        guard offers(RunProxy.self), let connection = try ControlSocket.connectIfRunning(to: home) else { return nil }
        _ = connection.send(.perform(RunProxy(spoolBytes: spoolBytes)), nil)
        let reply: OperationReply<RunProxy.Result> = try nextReply(on: connection)
        switch reply {
        case .opened(let address, let token):
            return ServerProxy(address: address, token: Secret(utf8: token), connection: connection)
        case .failed(let diagnostics): throw ServerRefusal(diagnostics: diagnostics)
        case .unavailable: return nil
        case .busy(let count):
            declined(Self.busy(count))
            return nil
        case .progress, .finished: throw noAnswer
        }
    }

    private static func busy(_ count: Int) -> String {
        "`countersign serve` is busy with \(count) other commands"
    }

    /// How often in a row the server may leave another connection without an answer while a reply is awaited.
    private static let missedAnswers = 3

    /// Waits for the server's next line. An operation takes as long as it takes, but the server answers on another
    /// connection meanwhile, unless it has been stopped.
    private func nextReply<Result>(
        on connection: ControlConnection, isAbandoned: () -> Bool = { false }
    ) throws -> OperationReply<Result> {
        var (seconds, missed) = (0, 0)
        while !connection.waitForInput(seconds: 1) {
            if isAbandoned() { throw CountersignError(.refused, "the command was interrupted") }
            seconds += 1
            guard seconds.isMultiple(of: LocalSocket.timeoutSeconds) else { continue }
            missed = ControlSocket.responds(home) ? 0 : missed + 1
            guard missed < Self.missedAnswers else { throw noResponse }
        }
        guard case .line(let line) = connection.receiveLine() else { throw noAnswer }
        return try reply(in: line)
    }

    private func reply<Result>(in line: [UInt8]) throws -> OperationReply<Result> {
        let line = Data(line)
        if let reply = try? JSONDecoder().decode(OperationReply<Result>.self, from: line) { return reply }
        // The server has another result for the operation.
        if (try? JSONDecoder().decode(OperationReply<Done>.self, from: line)) != nil {
            throw CountersignError.unexpectedAnswer
        }
        // The server has not understood the request.
        let refusal = try? JSONDecoder().decode(ControlReply.self, from: line)
        if let reason = refusal?.error { throw CountersignError(.refused, reason) }
        throw noAnswer
    }

    private var noAnswer: CountersignError {
        CountersignError(
            .refused, "the server of \(home.path) ended the connection without a result", hint: Self.uncertainty)
    }

    private var noResponse: CountersignError {
        CountersignError(.refused, "the server of \(home.path) does not respond", hint: Self.uncertainty)
    }

    private static let uncertainty =
        "the operation may have been performed nevertheless; list what is stored before you repeat it"
}

/// A proxy that a running server runs for this process, until ``end()`` or the end of this process.
package struct ServerProxy: Sendable {
    /// `host:port`.
    package let address: String
    package let token: Secret
    let connection: ControlConnection

    /// How a proxy ended.
    package enum End: Equatable, Sendable {
        case finished(UnansweredReport)
        /// The server has stopped, or its vault can no longer be used. The report, if it could make one, is of the time
        /// before.
        case stopped(UnansweredReport?)
        /// The server does not respond.
        case silent
    }

    /// The server closes the proxy's connections before it replies.
    private static let endSeconds = 30

    /// Ends the proxy and returns its report of unanswered challenges.
    package func end() -> End {
        // A server that stops sends its message unprompted.
        let hasStopped = connection.waitForInput(seconds: 0)
        connection.endSending()
        guard connection.waitForInput(seconds: Self.endSeconds) else { return .silent }
        guard case .line(let line) = connection.receiveLine(),
            case .finished(let report)? = try? JSONDecoder().decode(
                OperationReply<RunProxy.Result>.self, from: Data(line))
        else { return .stopped(nil) }
        return hasStopped ? .stopped(report) : .finished(report)
    }
}

extension CountersignError {
    /// The error of a running server of another version.
    package static var unexpectedAnswer: CountersignError {
        CountersignError(
            .refused, "the running server gave an answer that this version does not expect",
            hint: "restart `countersign serve`")
    }
}
