// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// The Challenges room: what a 401 costs, and what every request does whose site is known.
enum ChallengeBenchmarks {
    static let groups = [
        BenchmarkGroup(prefix: "challenge", make: challenges), BenchmarkGroup(prefix: "basic", make: basic),
        BenchmarkGroup(prefix: "exchange", make: exchanges),
    ]

    static let credential = PasswordCredential(
        name: "enrollment", user: "jdoe", password: Secret(utf8: "correct horse 7"), generation: 3)

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
                keep(SchemeChooser.rank(parsed, permitted: AuthenticationScheme.supported))
            },
        ]
    }

    /// From the credential to what stands behind `Authorization: `.
    private static func basic() throws -> [Benchmark] {
        let challenges = try ChallengeParser.parse(fields: ["Basic realm=\"ACME intranet\", charset=\"UTF-8\""])
        let challenge = try require(challenges.first, "no Basic challenge is read")
        return [
            Benchmark("basic-answer") {
                keep(
                    try BasicAuthorization.authorization(for: credential, domain: "ACME", challenge: challenge)
                        .fieldValue)
            }
        ]
    }

    /// One request's dialogue that ends without a 401: the one of a site that is not on the list, and the one into a
    /// protection space where Basic was accepted before, with what is looked up for it.
    private static func exchanges() throws -> [Benchmark] {
        let origin = Origin(scheme: .https, host: "intranet.acme.example", port: 443)
        var terms = ChallengeExchange.Terms(
            origin: origin, site: .no("not on the list"), permitted: [], plaintextPermitted: false,
            clientAuthorizes: false, originTrusted: true, hasBody: false)
        let unlisted = terms
        terms.site = .yes("work.sites:3")
        terms.permitted = AuthenticationScheme.supported
        terms.learned = .basic(
            Authorization(scheme: "Basic", credentials: Array("ACME\\jdoe:correct horse 7".utf8)),
            realm: "ACME intranet", credential: credential.reference)
        let learned = terms
        guard case .send(.some) = opened(learned) else { throw SetUpFailure("what was learned is not sent") }

        let path = "/reports/2024/q3?view=summary"
        let scope = try require(PathScope(challengedPath: "/reports/index.html"), "a path without a scope")
        let key = Breaker.Key(origin: origin, credential: credential.name, generation: credential.generation)
        var breaker = Breaker()
        _ = breaker.attemptRequested(key)
        _ = breaker.attemptEnded(key, .accepted)
        return [
            Benchmark("exchange-unlisted") { keep(opened(unlisted)) },
            Benchmark("exchange-learned") {
                guard case .send(let authorization) = opened(learned) else { return }
                keep(authorization?.fieldValue)
            },
            Benchmark("exchange-scope") { keep(scope.contains(path)) },
            Benchmark("exchange-breaker") {
                keep(breaker.attemptRequested(key))
                keep(breaker.attemptEnded(key, .accepted))
            },
        ]
    }

    /// What goes out first; a 200 comes back.
    private static func opened(_ terms: ChallengeExchange.Terms) -> ChallengeExchange.Action {
        var exchange = ChallengeExchange(terms)
        let action = exchange.started()
        keep(exchange.responseReceived(status: 200, challengeFields: []))
        return action
    }
}
