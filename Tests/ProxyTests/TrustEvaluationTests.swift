// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import NIOCore
import CountersignTLS
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// Decides every question at once.
private struct QuickDelegate: ServerTrustDecider {
    let answer: TrustAnswer
    func decide(_ question: UntrustedServer) async -> TrustAnswer { answer }
}

@Suite(.timeLimit(.minutes(15))) struct TrustEvaluationTests {
    private static func with(_ bench: TrustBench, _ body: (TrustBench) async throws -> Void) async throws {
        do { try await body(bench) } catch {
            try? await bench.stop()
            throw error
        }
        try await bench.stop()
    }

    private static func expectProblem(_ answer: String, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(answer.hasPrefix("HTTP/1.1 502 "), "\(answer)", sourceLocation: sourceLocation)
        #expect(answer.contains("\r\nContent-Type: application/problem+json\r\n"), sourceLocation: sourceLocation)
        #expect(answer.contains("error=tls_certificate_error"), sourceLocation: sourceLocation)
        #expect(answer.contains("\"code\":\"unknown-issuer\""), sourceLocation: sourceLocation)
    }

    private static func expect(
        _ bench: TrustBench, _ prefix: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let answer = try await bench.answer()
        #expect(answer.hasPrefix(prefix), "\(answer)", sourceLocation: sourceLocation)
    }

    /// In JSON.
    private static let reason = #"issued by \"CN=nobody\", which is not trusted"#

    // MARK: No decision

    @Test func withoutADecisionNothingIsSent() async throws {
        try await Self.with(TrustBench(password: "pw")) { bench in
            Self.expectProblem(try await bench.answer())
            #expect(bench.seen.withLockedValue { $0.isEmpty })
            #expect(bench.lines.count == 1 && bench.lines[0].contains("\"reason\":\"\(Self.reason)\""))
        }
    }

    @Test func theClientsFingerprintIsAcceptedWithoutAnsweringAndAnotherIsNot() async throws {
        try await Self.with(TrustBench(password: "pw")) { bench in
            let other = try await bench.answer("Countersign-Trust: sha256:\(String(repeating: "0", count: 64))\r\n")
            Self.expectProblem(other)
            let yes = "Countersign-Trust: \(CertificateFingerprint.text(bench.leaf))\r\n"
            let answer = try await bench.answer(yes)
            #expect(answer.hasPrefix("HTTP/1.1 401 "), "\(answer)")
            #expect(bench.seen.withLockedValue { $0.count } == 1)
            #expect(bench.lines.last?.contains("\"trust\":\"client\"") == true)
            #expect(bench.lines.last?.contains("; \(Self.reason)\"") == true)
        }
    }

    // MARK: Trust exceptions

    @Test(arguments: [true, false]) func aTrustExceptionAnswersOnlyIfItPermitsIt(_ answers: Bool) async throws {
        try await Self.with(TrustBench(password: "pw")) { bench in
            try bench.decide([TrustException(leaf: bench.leaf, until: nil, answers: answers)], generation: 2)
            for _ in 0..<2 {
                try await Self.expect(bench, "HTTP/1.1 \(answers ? 200 : 401) ")
            }
            let sent = bench.seen.withLockedValue { $0 }
            // The second request is answered pre-emptively on the pooled connection, as at any origin that verifies.
            #expect(
                sent.map { $0.contains("Authorization: Basic ") } == (answers ? [false, true, true] : [false, false]))
            #expect(bench.lines.allSatisfy { $0.contains("\"trust\":\"standing\"") }, "\(bench.lines)")
            #expect(bench.lines.allSatisfy { $0.contains("\(Self.reason)\"") }, "\(bench.lines)")
        }
    }

    @Test func aTrustExceptionIsForItsLeafAndListedSitesOnly() async throws {
        try await Self.with(TrustBench(password: "pw")) { bench in
            try bench.decide([TrustException(leaf: bench.leaf.reversed(), until: nil, answers: true)], generation: 2)
            Self.expectProblem(try await bench.answer())
        }
        try await Self.with(TrustBench(isListed: false)) { bench in
            try bench.decide([TrustException(leaf: bench.leaf, until: nil, answers: true)], generation: 2)
            Self.expectProblem(try await bench.answer())
            #expect(bench.seen.withLockedValue { $0.isEmpty })
        }
    }

    @Test func removingATrustExceptionRetiresItsConnections() async throws {
        try await Self.with(TrustBench(password: "pw")) { bench in
            try bench.decide([TrustException(leaf: bench.leaf, until: nil, answers: true)], generation: 2)
            let client = try await bench.client()
            try await client.send(bench.get + "\r\n")
            _ = try await client.until("welcome")
            try bench.decide([], generation: 3)
            try await client.send(bench.get + "Connection: close\r\n\r\n")
            let all = try await client.rest()
            let end = try #require(all.firstRange(of: "welcome"))
            Self.expectProblem(String(all[end.upperBound...]))
            #expect(bench.seen.withLockedValue { $0.count } == 2)
        }
    }

    @Test(arguments: [true, false])
    func aDecisionThatIsTakenBackWhileTheOriginThinksAnswersNothing(_ isForgotten: Bool) async throws {
        try await Self.with(TrustBench(password: "pw")) { bench in
            try bench.decide([TrustException(leaf: bench.leaf, until: nil, answers: true)], generation: 2)
            let left = isForgotten ? [] : [TrustException(leaf: bench.leaf, until: nil, answers: false)]
            bench.meanwhile.withLockedValue { $0 = { try? bench.decide(left, generation: 3) } }
            try await Self.expect(bench, "HTTP/1.1 401 ")
            #expect(bench.seen.withLockedValue { $0 }.map { $0.contains("Authorization") } == [false])
        }
    }

    @Test func anExpiredTrustExceptionDoesNotCountForAnOpenConnection() async throws {
        try await Self.with(TrustBench()) { bench in
            let end = WallClock.now().seconds + 600
            try bench.decide([TrustException(leaf: bench.leaf, until: end, answers: true)], generation: 2)
            try await Self.expect(bench, "HTTP/1.1 200 ")
            bench.later.withLockedValue { $0 = 601 }
            Self.expectProblem(try await bench.answer())
        }
    }

    // MARK: The delegate

    @Test(arguments: [TrustAnswer.proceed(answering: false), .proceed(answering: true)])
    func theDelegatesYesGoesOnAndUnlocksNothing(_ answer: TrustAnswer) async throws {
        try await Self.with(TrustBench(password: "pw", delegate: QuickDelegate(answer: answer))) { bench in
            let answer = try await bench.answer()
            #expect(answer.hasPrefix("HTTP/1.1 401 "), "\(answer)")
            #expect(!bench.seen.withLockedValue { $0 }.contains { $0.contains("Authorization") })
            #expect(bench.lines.last?.contains("\"trust\":\"delegate\"") == true)
        }
    }

    @Test(arguments: [TrustAnswer.undecided, .refuse])
    func theDelegatesNoAndItsShrugAreAProblem(_ answer: TrustAnswer) async throws {
        try await Self.with(TrustBench(delegate: QuickDelegate(answer: answer))) { bench in
            Self.expectProblem(try await bench.answer())
            #expect(bench.seen.withLockedValue { $0.isEmpty })
            let client = try await bench.client()
            try await client.send(bench.connect)
            if answer == .refuse {
                Self.expectProblem(try await client.until("}\n"))
            } else {
                let answer = try await client.until("\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
            }
            await client.close()
        }
    }

    @Test func aDelegateThatNeverAnswersRefuses() async throws {
        let delegate = SlowDelegate()
        try await Self.with(TrustBench(delegate: delegate, patience: .milliseconds(200))) { bench in
            Self.expectProblem(try await bench.answer())
            let client = try await bench.client()
            try await client.send(bench.connect)
            Self.expectProblem(try await client.until("}\n"))
            while delegate.cancellations < 2 { try await Task.sleep(for: .milliseconds(2)) }
        }
        delegate.answer(.refuse)
    }

    @Test func theDelegateReceivesTheServerToDecideAbout() async throws {
        let delegate = SlowDelegate()
        try await Self.with(TrustBench(delegate: delegate)) { bench in
            let client = try await bench.client()
            try await client.send(bench.get + "\r\n")
            await delegate.hear(1)
            let question = try #require(delegate.questions.first)
            #expect(question.host == "localhost" && question.port == bench.origin.port)
            #expect(question.address == "127.0.0.1:\(bench.origin.port)")
            #expect(question.tlsVersion == "TLSv1.3")
            #expect(question.trust.leaf?.sha256Fingerprint == bench.leaf)
            #expect(question.trust.reasons.contains(.unknownIssuer))
            delegate.answer(.proceed(answering: false))
            _ = try await client.until("welcome")
            await client.close()
        }
    }

    @Test func consentHoldsForAllConnectionsOfTheSameClientOnly() async throws {
        let delegate = SlowDelegate()
        try await Self.with(TrustBench(delegate: delegate)) { bench in
            let client = try await bench.client()
            try await client.send(bench.get + "\r\n")
            await delegate.hear(1)
            delegate.answer(.proceed(answering: false))
            _ = try await client.until("welcome")
            // Connections from before a reload are not reused, so this opens another one.
            try bench.decide([], generation: 2)
            try await client.send(bench.get + "\r\n")
            _ = try await client.until("welcome", times: 2)
            #expect(delegate.questions.count == 1)
            let later = try await bench.client()
            try await later.send(bench.get + "\r\n")
            await delegate.hear(2)
            delegate.answer(.refuse)
            Self.expectProblem(try await later.until("}\n"))
            #expect(bench.seen.withLockedValue { $0.count } == 2)
            await client.close()
            await later.close()
        }
    }

    @Test func theQuestionOfAClientThatHasGoneIsWithdrawn() async throws {
        let delegate = SlowDelegate()
        try await Self.with(TrustBench(delegate: delegate)) { bench in
            let client = try await bench.client()
            try await client.send(bench.connect)
            await delegate.hear(1)
            await client.close()
            while delegate.cancellations == 0 { try await Task.sleep(for: .milliseconds(2)) }
            #expect(bench.seen.withLockedValue { $0.isEmpty })
        }
        delegate.answer(.proceed(answering: true))
    }
}
