// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignTLS
import CountersignUpstream

/// Evaluates an origin's certificate during one attempt to connect. If it does not verify, the handshake waits for the
/// decision whether to proceed.
///
/// A trust exception decides first, for listed sites; then the fingerprint that the client has sent; then the delegate,
/// for listed sites. If none of them does, the handshake completes and nothing is sent: the decision is left to the
/// client.
final class TrustEvaluation {
    /// The permitted use of an established connection.
    enum Finding {
        case proceed(TrustOutcome)
        /// The certificate does not verify, and there is no decision.
        case undecided(ServerTrust, leaf: [UInt8])
        case refused(OwnResponse)
    }

    private let origin: Origin
    private let isListed: Bool
    /// The fingerprint of the only leaf that the client accepts.
    private let pin: [UInt8]?
    private let services: LoopServices
    private let client: ClientSession

    /// The connection that is waiting. It retains this object until its handshake is over.
    private var connection: (any OriginLease)?
    private var isCancelled = false
    private var ticket: TrustQuestions.Ticket?
    private var outcome: TrustOutcome?
    private var problem: TrustProblemDocument?

    init(origin: Origin, isListed: Bool, pin: [UInt8]?, services: LoopServices, client: ClientSession) {
        self.origin = origin
        self.isListed = isListed
        self.pin = pin
        self.services = services
        self.client = client
    }

    /// For the connector. Retains this object until the connection is established.
    var source: OriginConnection.TrustSource {
        { trust, connection, answer in self.decide(trust, connection, answer) }
    }

    /// The delegate has been asked and has not answered.
    var isAsking: Bool { ticket != nil }

    /// The connection is no longer needed: withdraws the question, and closes the connection if it waits for the
    /// answer.
    func cancel() {
        isCancelled = true
        guard ticket != nil else { return }
        withdraw()
        connection?.close()
    }

    /// The question was about a connection that is gone.
    private func withdraw() {
        guard let ticket else { return }
        self.ticket = nil
        services.questions.withdraw(ticket)
    }

    // MARK: During the handshake

    private func decide(
        _ trust: ServerTrust, _ connection: any OriginLease, _ answer: @escaping (TrustAnswer) -> Void
    ) {
        guard !isCancelled else { return connection.close() }
        withdraw()
        self.connection = connection
        outcome = nil
        note(trust, connection)
        if isListed { services.shared.tellUntrusted(origin, trust) }
        guard let leaf = trust.leaf?.sha256Fingerprint, pin == nil || pin == leaf else {
            return undecided(trust, answer)
        }
        let shared = services.shared
        if isListed,
            let exception = shared.policy.current.trustException(for: origin, leaf: leaf, now: shared.wallClock())
        {
            return proceed(.exception(exception), answer)
        }
        if pin != nil { return proceed(.client(leaf: leaf), answer) }
        guard isListed, let delegate = shared.serverTrustDecider, client.isConnected else {
            return undecided(trust, answer)
        }
        if client.consents[origin]?.covers(trust) == true { return proceed(.delegate(leaf: leaf), answer) }
        let server = UntrustedServer(
            host: origin.host, port: origin.port, trust: trust, address: connection.address ?? "",
            tlsVersion: connection.tlsVersion ?? "")
        let key = TrustQuestions.Key(origin: origin, leaf: leaf, reasons: Set(trust.reasons))
        ticket = services.questions.ask(server, key, of: delegate) { decision in
            self.ticket = nil
            guard case .proceed = decision else { return answer(decision) }
            self.client.consents[self.origin] = DelegateConsent(leaf: leaf, reasons: key.reasons)
            self.proceed(.delegate(leaf: leaf), answer)
        }
    }

    private func proceed(_ trust: TrustOutcome, _ answer: (TrustAnswer) -> Void) {
        outcome = trust
        answer(.proceed(answering: trust.answers))
    }

    private func undecided(_ trust: ServerTrust, _ answer: (TrustAnswer) -> Void) {
        if isListed { services.shared.observer?.tell(.untrusted(origin, trust)) }
        answer(.undecided)
    }

    private func note(_ trust: ServerTrust, _ connection: any OriginLease) {
        problem = TrustProblemDocument(
            origin: origin, trust: trust, address: connection.address, tlsVersion: connection.tlsVersion)
    }

    // MARK: After the handshake

    func finding(_ connection: any OriginLease) -> Finding {
        withdraw()
        guard let tls = connection.tls else { return .proceed(.verified) }
        guard let trust = tls.serverTrust, let leaf = tls.peerCertificate?.sha256Fingerprint else {
            return .refused(
                OwnResponse(
                    status: 502, detail: "the origin's certificate was not verified",
                    proxyError: "tls_certificate_error"))
        }
        if trust.isTrusted {
            services.shared.observer?.tell(.verified(origin, trust))
            if isListed { services.shared.tellUnknownRevocation(of: origin, trust) }
        }
        guard !trust.isTrusted else {
            guard let pin else { return .proceed(.verified) }
            guard pin == leaf else {
                let detail = "\(connection.place): the certificate is not the one that the client accepted"
                return .refused(OwnResponse(UpstreamError(.trustChanged, detail)))
            }
            return .proceed(.client(leaf: leaf))
        }
        if case .proceed(let answering)? = tls.trustAnswer, let outcome, outcome.answers == answering {
            return .proceed(outcome)
        }
        note(trust, connection)
        return pin == nil ? .undecided(trust, leaf: leaf) : .refused(refusal)
    }

    /// The response for a connection that could not be established.
    func refusal(after error: UpstreamError) -> OwnResponse {
        error.code == .notTrusted ? refusal : OwnResponse(error)
    }

    /// The response if the certificate was not accepted, with the details that the client needs for a decision.
    var refusal: OwnResponse {
        problem?.response
            ?? OwnResponse(
                status: 502, detail: "the origin's certificate is not trusted", proxyError: "tls_certificate_error")
    }
}
