// SPDX-License-Identifier: Apache-2.0

package import CountersignEvents
package import CountersignHome
package import CountersignReporting
import FoundationEssentials
import Glibc

/// A command that is sent to a running server: one JSON object per line. The secret of a request, if it has one,
/// follows the line as ``ControlMessage/secretBytes`` bytes.
package enum ControlRequest: Sendable {
    case status
    case lock
    /// The secret is the vault's passphrase, if it requires one.
    case unlock
    /// The server replaces itself by a new process.
    case restart
    /// The next hops of a request to the URL. The reply has a ``ControlReply/route``.
    case route(url: String)
    /// The address of the page in the browser, with a one-time token. The reply has a ``ControlReply/page``.
    case page
    /// The questions that wait for a person. The reply has ``ControlReply/questions``.
    case questions
    /// The clients that are connected. The reply has ``ControlReply/clients``.
    case clients
    /// Answers one of them, with a word of ``ApprovalBoard/Answer``.
    case approve(id: UInt64, answer: String)
    /// What the server does from now on, as lines with a JSON object each, until this connection is closed.
    case events
    /// Answered by ``OperationReply`` lines; the other requests are answered by one ``ControlReply``.
    case perform(any VaultOperation)
    /// The page that an operation in progress on this connection needs has ended. Nothing answers it.
    case pageEnded(PageEnd)
}

/// The JSON form of a request, without its secret.
package struct ControlMessage: Sendable {
    package let request: ControlRequest
    /// The size of the secret that follows; nil without one.
    package let secretBytes: Int?

    /// The size of the largest secret, in bytes: a private key.
    package static let largestSecretBytes = 64 << 10

    package init(_ request: ControlRequest, secretBytes: Int? = nil) {
        self.request = request
        self.secretBytes = secretBytes
    }
}

/// The reply of a running server.
package struct ControlReply: Equatable, Sendable, Codable {
    package var isLocked: Bool
    /// Why the command failed; the vault is unchanged then.
    package var error: String?
    package var hint: String?
    /// Whether ``error`` is that the passphrase is wrong; nil otherwise.
    package var isWrongPassphrase: Bool?
    package var processIdentifier: Int32
    /// The addresses on which the server accepts clients, as `host:port` or `unix:PATH`. Servers of earlier versions do
    /// not report them.
    package var addresses: [String]?
    /// The absolute path of the file with the token that clients must send, if they must.
    package var clientTokenFile: String?
    /// The names of the operations that the server performs for commands while its vault is open; nil if it performs
    /// none. Only in the reply to `status`.
    package var operations: [String]?
    /// The Kerberos tickets and configuration that these operations use. Servers of earlier versions do not report it.
    package var kerberos: KerberosEnvironment?
    /// Whether the server answers ``ControlRequest/route(url:)``. Only in the reply to `status`.
    package var knowsRoutes: Bool?
    /// The answer to it.
    package var route: [RouteHop]?
    /// The answer to ``ControlRequest/page``: a URL.
    package var page: String?
    /// The answer to ``ControlRequest/questions``.
    package var questions: [QuestionEvent]?
    /// The answer to ``ControlRequest/clients``.
    package var clients: [ListedClient]?
    /// When the server started, in seconds since 1970. Only in the reply to `status`.
    package var since: Int64?
    /// The server's version. Only in the reply to `status`.
    package var version: String?

    package init(
        isLocked: Bool, error: String? = nil, hint: String? = nil, processIdentifier: Int32 = getpid(),
        addresses: [String]? = nil, clientTokenFile: String? = nil
    ) {
        self.isLocked = isLocked
        self.addresses = addresses
        self.clientTokenFile = clientTokenFile
        self.error = error
        self.hint = hint
        self.processIdentifier = processIdentifier
    }

    private enum CodingKeys: String, CodingKey {
        case isLocked = "locked"
        case error, hint, addresses, clientTokenFile, operations, kerberos, knowsRoutes, route, page, questions,
            clients,
            since, version
        case isWrongPassphrase = "wrongPassphrase"
        case processIdentifier = "pid"
    }
}

/// A line of the reply to an operation: any number of `progress`, or one `opened`, then one of the others.
package enum OperationReply<Result: Codable & Sendable>: Codable, Sendable {
    case progress(RenewalProgress)
    /// A proxy accepts clients at `address`, `host:port`, that send the token.
    case opened(address: String, token: String)
    case finished(Result)
    /// The operation failed.
    case failed([Diagnostic])
    /// The server cannot perform it, for example because the vault is locked; nothing was done.
    case unavailable(reason: String)
    /// The server performs `count` long operations already; nothing was done.
    case busy(count: Int)
}

extension ControlMessage: Codable {
    private enum CodingKeys: String, CodingKey { case command, operation, page, url, id, answer, secretBytes }
    private enum Command: String, Codable {
        case status, lock, unlock, restart, route, page, questions, clients, approve, events, perform, pageEnded
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        request =
            switch try container.decode(Command.self, forKey: .command) {
            case .status: .status
            case .lock: .lock
            case .unlock: .unlock
            case .restart: .restart
            case .route: .route(url: try container.decode(String.self, forKey: .url))
            case .page: .page
            case .events: .events
            case .questions: .questions
            case .clients: .clients
            case .approve:
                .approve(
                    id: try container.decode(UInt64.self, forKey: .id),
                    answer: try container.decode(String.self, forKey: .answer))
            case .perform: .perform(try container.decode(SentOperation.self, forKey: .operation).operation)
            case .pageEnded: .pageEnded(try container.decode(PageEnd.self, forKey: .page))
            }
        secretBytes = try container.decodeIfPresent(Int.self, forKey: .secretBytes)
        if let secretBytes, !(1...Self.largestSecretBytes).contains(secretBytes) {
            throw DecodingError.dataCorruptedError(
                forKey: .secretBytes, in: container, debugDescription: "not the size of a secret")
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch request {
        case .status: try container.encode(Command.status, forKey: .command)
        case .lock: try container.encode(Command.lock, forKey: .command)
        case .unlock: try container.encode(Command.unlock, forKey: .command)
        case .restart: try container.encode(Command.restart, forKey: .command)
        case .route(let url):
            try container.encode(Command.route, forKey: .command)
            try container.encode(url, forKey: .url)
        case .page: try container.encode(Command.page, forKey: .command)
        case .events: try container.encode(Command.events, forKey: .command)
        case .questions: try container.encode(Command.questions, forKey: .command)
        case .clients: try container.encode(Command.clients, forKey: .command)
        case .approve(let id, let answer):
            try container.encode(Command.approve, forKey: .command)
            try container.encode(id, forKey: .id)
            try container.encode(answer, forKey: .answer)
        case .perform(let operation):
            try container.encode(Command.perform, forKey: .command)
            try container.encode(SentOperation(operation), forKey: .operation)
        case .pageEnded(let end):
            try container.encode(Command.pageEnded, forKey: .command)
            try container.encode(end, forKey: .page)
        }
        try container.encodeIfPresent(secretBytes, forKey: .secretBytes)
    }
}
