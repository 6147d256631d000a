// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignEnrollment
import CountersignOAuth

/// Sends requests to a provider, one at a time or several.
package struct ProviderClient: Sendable {
    private let anchors: ESTServerAnchors
    /// Certificates that verify no provider: those of our own interception CA.
    private let refused: [Certificate]
    private let now: @Sendable () -> Int64
    private let limit: Duration
    /// Those of the providers.
    private let nonces = DPoPNonces()

    /// `now` is in seconds since 1970; `limit` is for one request.
    package init(
        anchors: ESTServerAnchors, refusing refused: [Certificate], limit: Duration = .seconds(30),
        now: @escaping @Sendable () -> Int64
    ) {
        self.anchors = anchors
        self.refused = refused
        self.now = now
        self.limit = limit
    }

    /// A request with this client's time limit.
    func exchange(_ url: EndpointURL, body: Secret?) -> WebExchange {
        var exchange = WebExchange(url.origin, target: url.target)
        exchange.body = body
        exchange.limit = limit
        return exchange
    }

    /// Runs it with this client's anchors.
    func run(_ exchange: WebExchange) async throws(EnrollmentError) -> WebExchange.Response {
        try await exchange.run(anchors, refusing: refused, now: now)
    }

    /// `remaining` is the time left for the whole operation, and is rounded up to full seconds; nil for this client's
    /// limit alone.
    /// A request with a proof is sent once more if the provider asks for its nonce in the proof (RFC 9449 §8).
    package func send(_ request: ProviderRequest, within remaining: Duration? = nil) async -> ProviderOutcome {
        let outcome = await sendOnce(request, within: remaining)
        guard request.proofKey != nil, case .response(let response) = outcome, response.asksForNonce,
            let nonce = response.nonce
        else { return outcome }
        return await sendOnce(request, nonce: nonce, within: remaining)
    }

    /// `nonce` is that of the response that the request answers: the provider may accept each one only once.
    private func sendOnce(
        _ request: ProviderRequest, nonce: String? = nil, within remaining: Duration?
    ) async -> ProviderOutcome {
        var exchange = WebExchange(request.url.origin, target: request.url.target)
        exchange.limit = limit
        if let (seconds, attoseconds) = remaining?.components {
            exchange.limit = min(limit, .seconds(max(1, attoseconds > 0 ? seconds + 1 : seconds)))
        }
        let completed: ProviderRequest
        switch await completion(of: request, nonce ?? nonces.nonce(of: request.url.origin), within: exchange.limit) {
        case .success(let request): completed = request
        case .failure(let failure): return .failure(failure)
        }
        exchange.body = completed.body
        exchange.responseBytes = ProviderRequest.maximumResponseBytes
        exchange.fields.append(("Accept", Secret(utf8: request.accept)))
        if let type = request.contentType { exchange.fields.append(("Content-Type", Secret(utf8: type))) }
        if let authorization = request.authorization { exchange.fields.append(("Authorization", authorization)) }
        for (name, value) in request.fields { exchange.fields.append((name, Secret(utf8: value))) }
        if let proof = completed.proof { exchange.fields.append(("DPoP", Secret(utf8: proof))) }
        do throws(EnrollmentError) {
            let response = try await exchange.run(anchors, refusing: refused, now: now)
            let given = DPoPNonces.nonce(in: response.fields.filter { $0.name == "dpop-nonce" }.map(\.value))
            if let given { nonces.note(given, of: request.url.origin) }
            return .response(
                ProviderResponse(
                    status: response.status, contentType: response.field("content-type"),
                    retryAfter: retryAfter(response), nonce: given, to: completed.secrets,
                    body: response.body.withBytes { Array($0) }))
        } catch {
            return .failure(
                ProviderFailure(
                    error.detail, hint: error.hint, timedOut: error.code == .timedOut, isTransient: error.isTransient))
        }
    }

    private func completion(
        of request: ProviderRequest, _ nonce: String?, within limit: Duration
    ) async -> RequestCompletion.Outcome {
        let now = now
        let complete: @Sendable () throws(OAuthError) -> ProviderRequest = { () throws(OAuthError) in
            try request.completed(at: now(), nonce: nonce, random: { Randomness.bytes($0) })
        }
        guard request.mayBlock else { return RequestCompletion.Outcome(completing: complete) }
        return await RequestCompletion.run(within: limit, complete)
    }

    /// A profile from an https URL. Throws ``EnrollmentError``.
    package func profile(at url: EndpointURL) async throws -> [UInt8] {
        var exchange = WebExchange(url.origin, target: url.target)
        exchange.limit = limit
        exchange.responseBytes = SignInProfile.maximumBytes
        exchange.fields.append(("Accept", Secret(utf8: "application/json")))
        let response = try await fetch(exchange, url)
        guard response.status == 200 else {
            let redirects = (300...399).contains(response.status) ? ", and redirects are not followed" : ""
            throw SignInError(.profile, "\(url) answers with the status \(response.status)\(redirects)")
        }
        return response.body.withBytes { Array($0) }
    }

    /// An error names the address.
    func fetch(
        _ exchange: WebExchange, _ url: EndpointURL
    ) async throws(EnrollmentError) -> WebExchange.Response {
        do {
            return try await exchange.run(anchors, refusing: refused, now: now)
        } catch {
            guard error.code != .cancelled else { throw error }
            throw EnrollmentError(
                error.code, "\(url) cannot be read: \(error.detail)",
                hint: error.hint ?? "check the address and the network, or pass the profile as a file")
        }
    }

    /// RFC 9110 §10.2.3, at most a day.
    private func retryAfter(_ response: WebExchange.Response) -> Int64? {
        guard let value = response.field("retry-after") else { return nil }
        let seconds: Int64
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            seconds = Int64(value) ?? .max
        } else {
            let date = csn_curl_getdate(value)
            guard date >= 0 else { return nil }
            seconds = Int64(date) - now()
        }
        return min(max(0, seconds), 86_400)
    }
}
