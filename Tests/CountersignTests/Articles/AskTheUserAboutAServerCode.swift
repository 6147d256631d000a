// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import CountersignTestOrigin
import CountersignURLSession
import Foundation
import FoundationNetworking
import Synchronization
import Testing

/// A window of an app, in which a person agrees to everything.
private struct Window: Sendable {
    let asked = Asked()

    final class Asked: Sendable { let lines = Mutex<[String]>([]) }

    func confirm(_ question: String, details: String) async -> Bool {
        asked.lines.withLock { $0.append("\(question)\n\(details)") }
        return true
    }

    func login(_ host: String, user: String) async -> (user: String, password: String, remembers: Bool)? {
        asked.lines.withLock { $0.append("login \(host) \(user)") }
        return (user, LibraryHome.password, false)
    }
}

private let window = Window()

/// The code of the article "Ask the user about a server".
struct AskTheUserAboutAServerCode {
    // MARK: The article

    private func proxy(_ controller: ChallengeController) -> ChallengeProxy {
        struct AskInAWindow: ServerTrustDelegate {
            func decide(_ question: ServerTrustQuestion) async -> ServerTrustDecision {
                let reasons = question.verdict.reasons.map(\.description).joined(separator: "\n")
                let fingerprint = question.verdict.leaf?.fingerprint ?? ""
                let proceeds = await window.confirm(
                    "\(question.host) cannot be verified", details: "\(reasons)\n\(fingerprint)")
                return proceeds ? .proceed : .refuse
            }
        }

        let proxy = ChallengeProxy(controller, serverTrustDelegate: AskInAWindow())
        return proxy
    }

    struct AskForAPassword: CredentialDelegate {
        func credential(for question: CredentialQuestion) async -> SuppliedCredential? {
            guard let typed = await window.login(question.protectionSpace.host, user: question.user) else { return nil }
            return SuppliedCredential(user: typed.user, password: Password(typed.password), isKept: typed.remembers)
        }
    }

    // MARK: Tests

    private func status(of url: String, through proxy: ChallengeProxy) async throws -> Int? {
        let running = Task { try await proxy.run() }
        let session = try await AnsweringSession(configuration: .ephemeral, through: proxy)
        let (_, response) = try await session.data(from: #require(URL(string: url)))
        running.cancel()
        try await running.value
        return (response as? HTTPURLResponse)?.statusCode
    }

    @Test func aServerThatThePersonAcceptsIsReached() async throws {
        let origin = try LibraryOrigins.shared.untrustedURL
        let controller = try LibraryHome("\(origin)\n").controller()
        #expect(try await status(of: "\(origin)/file", through: proxy(controller)) == 200)
        let asked = window.asked.lines.withLock { $0 }
        #expect(asked.contains { $0.hasPrefix("untrusted.test.localhost cannot be verified\n") })
    }

    @Test func aPasswordThatThePersonTypesIsSent() async throws {
        let origins = try LibraryOrigins.shared
        let home = try LibraryHome(
            "\(origins.basicURL) answer=basic\n", credentials: ["enrollment": (LibraryHome.user, "wrong")],
            anchors: [try TestPKI.shared.originAnchor])
        let proxy = ChallengeProxy(try home.controller(), credentialDelegate: AskForAPassword())
        #expect(try await status(of: "\(origins.basicURL)/basic/index", through: proxy) == 200)
    }
}
