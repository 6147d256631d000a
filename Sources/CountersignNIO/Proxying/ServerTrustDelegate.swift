// SPDX-License-Identifier: Apache-2.0

public import Countersign
import CountersignAnswering
import CountersignProxy
import CountersignTLS

/// A question to a ``ServerTrustDelegate``: whether to continue to a listed server that cannot be verified.
public struct ServerTrustQuestion: Equatable, Sendable {
    /// The server's canonical name or address, without brackets for IPv6.
    public let host: String
    /// The server's port.
    public let port: Int
    /// The server's certificate chain, and all reasons that verification failed.
    public let verdict: ServerTrustVerdict
    /// The server's address on the connection.
    public let address: NetworkAddress
    /// `TLSv1.3` or `TLSv1.2`.
    public let tlsVersion: String

    /// Creates a question, for the tests of a program.
    public init(
        host: String, port: Int, verdict: ServerTrustVerdict, address: NetworkAddress, tlsVersion: String
    ) {
        self.host = host
        self.port = port
        self.verdict = verdict
        self.address = address
        self.tlsVersion = tlsVersion
    }
}

/// The answer to a ``ServerTrustQuestion``.
public enum ServerTrustDecision: Hashable, Sendable {
    /// The connection is not made.
    case refuse
    /// Send the request to this server, and also all later requests on the same client connection. Each `URLSession`
    /// task has its own connection. The server's challenges are not answered, and no client certificate is presented.
    case proceed
}

/// Decides about servers whose certificates cannot be verified.
public protocol ServerTrustDelegate: Sendable {
    /// Returns whether to continue to a listed server that cannot be verified.
    ///
    /// The handshake waits for the answer, and nothing has been sent. After 30 seconds, the server is refused and the
    /// task is cancelled. Requests to the same server with the same certificate share one question. The delegate is not
    /// asked about a server for which `countersign trust allow` has recorded an exception.
    func decide(_ question: ServerTrustQuestion) async -> ServerTrustDecision
}

/// Passes the proxy's questions to a delegate of the public API.
struct AskedServerTrust: CountersignProxy.ServerTrustDecider {
    let delegate: any ServerTrustDelegate
    /// Called before an acceptance takes effect.
    let agreed: @Sendable () -> Void

    func decide(_ question: CountersignProxy.UntrustedServer) async -> TrustAnswer {
        let asked = ServerTrustQuestion(
            host: question.host, port: Int(question.port), verdict: ServerTrustVerdict(question.trust),
            address: NetworkAddress(joined: question.address), tlsVersion: question.tlsVersion)
        switch await delegate.decide(asked) {
        case .refuse:
            return .refuse
        case .proceed:
            agreed()
            return .proceed(answering: false)
        }
    }
}
