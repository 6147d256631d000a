// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignTLS
import CountersignUpstream

/// Decides, while an origin's handshake stands still, whether to go on although its certificate does not verify. For one
/// attempt to connect.
///
/// The order: a standing decision, for listed sites; the word that the client has given already; the delegate, for listed sites.
/// Where none of them speaks the handshake completes undecided, and nothing is sent: the client is handed the decision.
final class TrustEvaluation {
    /// What an attempt to connect came to.
    enum Finding {
        case goOn(TrustOutcome)
        /// Nobody has decided.
        case undecided(ServerTrust, leaf: [UInt8])
        case refused(OwnResponse)
    }

    private let origin: Origin
    private let isListed: Bool
    /// The one leaf that will do, which the client has named.
    private let pin: [UInt8]?
    private let services: LoopServices
    private let client: ClientPresence

    /// The one that asks. It holds this door in turn, until its handshake is over.
    private var connection: OriginConnection?
    private var isCancelled = false
    private var ticket: TrustQuestions.Ticket?
    private var agreed: TrustOutcome?
    private var problem: TrustProblemDocument?

    init(origin: Origin, isListed: Bool, pin: [UInt8]?, services: LoopServices, client: ClientPresence) {
        self.origin = origin
        self.isListed = isListed
        self.pin = pin
        self.services = services
        self.client = client
    }

    /// For the connector; holds the door until the connection is established.
    var source: OriginConnection.TrustSource {
        { trust, connection, answer in self.decide(trust, connection, answer) }
    }

    /// The delegate is thinking.
    var isAsking: Bool { ticket != nil }

    /// Nobody waits for the connection any more: the question is withdrawn and the handshake, if it stands still, given up.
    func cancel() {
        isCancelled = true
        guard let ticket else { return }
        self.ticket = nil
        services.questions.withdraw(ticket)
        connection?.close()
    }

    // MARK: During the handshake

    private func decide(
        _ trust: ServerTrust, _ connection: OriginConnection, _ answer: @escaping (TrustAnswer) -> Void
    ) {
        guard !isCancelled else { return connection.close() }
        self.connection = connection
        agreed = nil
        note(trust, connection)
        guard let leaf = trust.leaf?.sha256Fingerprint, pin == nil || pin == leaf else { return answer(.undecided) }
        let shared = services.shared
        if isListed,
            let exception = shared.policy.current.trustException(for: origin, leaf: leaf, now: shared.wallClock())
        {
            return goOn(.exception(exception), answer)
        }
        if pin != nil { return goOn(.client(leaf: leaf), answer) }
        guard isListed, let delegate = shared.serverTrustDecider, let client = client.connection else {
            return answer(.undecided)
        }
        if client.consents[origin]?.covers(trust) == true { return goOn(.delegate(leaf: leaf), answer) }
        let question = UntrustedServer(
            host: origin.host, port: origin.port, trust: trust, address: connection.address ?? "",
            tlsVersion: connection.tlsVersion ?? "")
        let key = TrustQuestions.Key(origin: origin, leaf: leaf, reasons: Set(trust.reasons))
        ticket = services.questions.ask(question, key, of: delegate) { said in
            self.ticket = nil
            guard case .proceed = said else { return answer(said) }
            self.client.connection?.consents[self.origin] = DelegateConsent(leaf: leaf, reasons: key.reasons)
            self.goOn(.delegate(leaf: leaf), answer)
        }
    }

    private func goOn(_ trust: TrustOutcome, _ answer: (TrustAnswer) -> Void) {
        agreed = trust
        answer(.proceed(answering: trust.answers))
    }

    private func note(_ trust: ServerTrust, _ connection: OriginConnection) {
        problem = TrustProblemDocument(
            origin: origin, trust: trust, address: connection.address, tlsVersion: connection.tlsVersion)
    }

    // MARK: After it

    /// What an established connection may be used for.
    func finding(_ connection: OriginConnection) -> Finding {
        guard let tls = connection.tls else { return .goOn(.verified) }
        guard let trust = tls.serverTrust, let leaf = tls.peerCertificate?.sha256Fingerprint else {
            return .refused(
                OwnResponse(
                    status: 502, detail: "the origin's certificate was not verified",
                    proxyError: "tls_certificate_error"))
        }
        guard !trust.isTrusted else {
            guard let pin else { return .goOn(.verified) }
            guard pin == leaf else {
                return .refused(
                    OwnResponse(
                        UpstreamError(
                            .trustChanged, "\(connection.place): the certificate is not the one that was agreed to")))
            }
            return .goOn(.client(leaf: leaf))
        }
        if case .proceed(let answering)? = tls.trustAnswer, let agreed, agreed.answers == answering {
            return .goOn(agreed)
        }
        note(trust, connection)
        return pin == nil ? .undecided(trust, leaf: leaf) : .refused(refusal)
    }

    /// Why an attempt came to nothing.
    func refusal(after error: UpstreamError) -> OwnResponse {
        error.code == .notTrusted ? refusal : OwnResponse(error)
    }

    /// For a client that is to decide, or whose decision, or the delegate's, was no.
    var refusal: OwnResponse {
        problem?.response
            ?? OwnResponse(
                status: 502, detail: "the origin's certificate is not trusted", proxyError: "tls_certificate_error")
    }
}
