// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import CountersignAnswering
import CountersignProxy

/// Challenges: the cost of a 401, and of a request to a site that has accepted a credential before.
enum ChallengeBenchmarks {
    static let groups = [
        BenchmarkGroup(prefix: "challenge", make: challenges), BenchmarkGroup(prefix: "basic", make: basic),
        BenchmarkGroup(prefix: "exchange", make: exchanges),
    ]

    static let credential = PasswordCredential(
        name: "enrollment", user: "jdoe", password: Secret(utf8: "correct horse 7"), generation: 3)

    /// As long as a short JWT.
    static let token = TokenCredential(
        name: "api", token: Secret(utf8: String(repeating: "eyJhbGciOi.", count: 60)), generation: 4)

    private static func challenges() throws -> [Benchmark] {
        let lines = ["Negotiate", "NTLM", "Basic realm=\"intranet.acme.example\""]
        let list = [
            "Digest realm=\"ACME intranet\", qop=\"auth\", algorithm=SHA-256, "
                + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
                + "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", NTLM, "
                + "Basic realm=\"ACME intranet\", charset=\"UTF-8\""
        ]
        let parsed = try ChallengeParser.parse(fields: list)
        guard parsed.count == 3, parsed.map(\.parameters.count) == [5, 0, 2] else {
            throw SetUpFailure("three challenges are read as \(parsed)")
        }
        return [
            Benchmark("challenge-parse-lines") { keep(try ChallengeParser.parse(fields: lines)) },
            Benchmark("challenge-parse-list") { keep(try ChallengeParser.parse(fields: list)) },
            Benchmark("challenge-choose") {
                keep(AuthenticatorTable.supported.offers(in: parsed, permitted: AuthenticationScheme.supported))
            },
        ]
    }

    /// Computes the value of `Authorization` from the credential.
    private static func basic() throws -> [Benchmark] {
        let challenges = try ChallengeParser.parse(fields: ["Basic realm=\"ACME intranet\", charset=\"UTF-8\""])
        let challenge = try require(challenges.first, "no Basic challenge is read")
        return [
            Benchmark("basic-answer") {
                keep(
                    try BasicAuthenticator.field(for: credential, domain: "ACME", challenge: challenge)
                        .fieldValue)
            }
        ]
    }

    /// Exchanges without a 401: with a site that is not listed, and in a protection space that accepted Basic before,
    /// with the look-ups that the latter needs.
    private static func exchanges() throws -> [Benchmark] {
        let origin = Origin(scheme: .https, host: "intranet.acme.example", port: 443)
        var context = RequestContext(
            origin: origin, authenticators: .supported, site: .no("not on the list"), permitted: [],
            plaintextPermitted: false, clientAuthorizes: false, originTrusted: true, hasBody: false)
        let unlisted = context
        context.site = .yes("work.sites:3")
        context.permitted = AuthenticationScheme.supported
        let field = AuthorizationField(scheme: "Basic", credentials: Array("ACME\\jdoe:correct horse 7".utf8))
        let challenge = Challenge(scheme: "Basic", parameters: [AuthParameter("realm", "ACME intranet")])
        context.accepted = AcceptedAnswer(
            Offer(BasicAuthenticator.shared, challenge), at: origin, credential: credential.reference,
            preemption: .answer(.fixed(field)))
        let learned = context
        guard case .send(.some) = opened(learned) else { throw SetUpFailure("the accepted credential is not sent") }

        let path = "/reports/2024/q3?view=summary"
        let scope = try require(PathScope(challengedPath: "/reports/index.html"), "the path has no scope")
        let space = AuthenticationSpace(origin: origin, realm: "ACME intranet", scheme: .basic)
        let key = Breaker.Key(space: space, credential: credential.reference)
        let request = Breaker.RequestTag(method: "GET", target: path)
        var breaker = Breaker()
        breaker.attemptBegan(key, for: request, owner: 1, at: 0)
        _ = breaker.attemptEnded(key, for: request, .accepted, owner: 1, at: 0)
        return [
            Benchmark("exchange-unlisted") { keep(opened(unlisted)) },
            Benchmark("exchange-learned") {
                guard case .send(.fixed(let authorization)) = opened(learned) else { return }
                keep(authorization.fieldValue)
            },
            Benchmark("exchange-scope") { keep(scope.contains(path)) },
            Benchmark("exchange-breaker") {
                keep(breaker.decide(key, for: request, at: 0))
                keep(breaker.attemptEnded(key, for: request, .accepted, owner: 1, at: 0))
            },
        ]
    }

    /// The first action of an exchange whose response is a 200.
    private static func opened(_ context: RequestContext) -> ExchangeMachine.Action {
        var exchange = ExchangeMachine(context)
        let action = exchange.started()
        keep(exchange.responseReceived(status: 200, challengeFields: []))
        return action
    }
}
