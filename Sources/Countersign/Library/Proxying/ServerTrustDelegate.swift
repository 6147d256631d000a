// SPDX-License-Identifier: Apache-2.0

import CountersignProxy
import CountersignTLS

/// What a delegate is asked: whether to go on to a listed server whose certificate does not verify.
public struct ServerTrustQuestion: Equatable, Sendable {
    /// The server's name or address, canonical; an IPv6 address without brackets.
    public let host: String
    /// The server's port.
    public let port: Int
    /// The chain as the server sent it, and every reason that speaks against it.
    public let verdict: ServerTrustVerdict
    /// What the connection goes to, with its port: `192.0.2.7:443`.
    public let address: String
    /// `TLSv1.3` or `TLSv1.2`.
    public let tlsVersion: String
}

/// The answer to a ``ServerTrustQuestion``.
public enum ServerTrustDecision: Hashable, Sendable {
    /// The connection is not made.
    case refuse
    /// The request goes out to this server, and so do those that follow it on the same connection of the client; each
    /// task of `URLSession` has one of its own. No challenge of the server is answered, and no client certificate is shown.
    case proceed
}

/// Decides about servers whose certificates do not verify.
public protocol ServerTrustDelegate: Sendable {
    /// Whether to go on to a listed server that does not verify.
    ///
    /// The handshake stands still meanwhile, and nothing has been sent. After 30 seconds the answer is no, and the task
    /// is cancelled. Several requests to the same server with the same certificate ask once. A server that `countersign
    /// trust allow` has recorded a decision for is not asked about.
    func decide(_ question: ServerTrustQuestion) async -> ServerTrustDecision
}

/// The proxy's question, put to a delegate of the API.
struct AskedServerTrust: CountersignProxy.ServerTrustDelegate {
    let delegate: any ServerTrustDelegate
    /// Called before a yes takes effect.
    let agreed: @Sendable () -> Void

    func decide(_ question: CountersignProxy.ServerTrustQuestion) async -> TrustAnswer {
        let asked = ServerTrustQuestion(
            host: question.host, port: Int(question.port), verdict: ServerTrustVerdict(question.trust),
            address: question.address, tlsVersion: question.tlsVersion)
        switch await delegate.decide(asked) {
        case .refuse:
            return .refuse
        case .proceed:
            agreed()
            return .proceed(answering: false)
        }
    }
}
