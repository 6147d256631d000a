// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import Synchronization
import CountersignTestOrigin
import Testing

@testable import Countersign
@testable import CountersignURLSession

/// The delegate of sessions that do not use the proxy.
@Suite(.waiting) struct LibrarySessionDelegateTests {
    private static func session(_ home: LibraryHome) throws -> URLSession {
        let answerer = URLSessionChallengeAnswerer(try home.controller())
        return URLSession(configuration: .ephemeral, delegate: answerer, delegateQueue: nil)
    }

    @Test func aSessionDelegateAnswersBasicOnce() async throws {
        let origin = try ChallengingOrigin(
            .basic, certificate: nil, user: LibraryHome.user, password: LibraryHome.password)
        let site = "http://basic.test.localhost:\(origin.port)"
        try Data("a file\n".utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        let url = try #require(URL(string: "\(site)/file"))
        for password in [LibraryHome.password, "wrong"] {
            let home = try LibraryHome(
                "\(site) answer=basic plaintext=yes\n", credentials: ["enrollment": (LibraryHome.user, password)])
            let controller = try home.controller()
            let session = URLSession(
                configuration: .ephemeral, delegate: URLSessionChallengeAnswerer(controller), delegateQueue: nil)
            let before = origin.log.requests(path: "/file").count
            if password == LibraryHome.password {
                let (data, _) = try await session.data(from: url)
                #expect(String(decoding: data, as: UTF8.self) == "a file\n")
            } else {
                await #expect(throws: URLError.self) { try await session.data(from: url) }
                #expect(origin.log.requests(path: "/file").count == before + 2)
                await #expect(throws: URLError.self) { try await session.data(from: url) }
                #expect(origin.log.requests(path: "/file").count == before + 3)
            }
            session.invalidateAndCancel()
        }
    }

    /// A 401 for missing permission does not make the password wrong.
    @Test func aForbiddenPageDoesNotRejectThePassword() async throws {
        let origin = try await PlainOrigin { request in
            request.contains("Authorization:") && !request.hasPrefix("GET /forbidden")
                ? PlainOrigin.response("200 OK")
                : PlainOrigin.response("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"")
        }
        let session = try Self.session(try LibraryHome("\(origin.site) answer=basic plaintext=yes preempt=no\n"))
        var statuses: [Int?] = []
        for path in ["/page", "/forbidden", "/page", "/page"] {
            let url = try #require(URL(string: origin.site + path))
            statuses.append((try? await session.data(from: url).1 as? HTTPURLResponse)?.statusCode)
        }
        session.invalidateAndCancel()
        try await origin.stop()
        #expect(statuses == [200, nil, 200, 200])
    }

    @Test(arguments: [LibraryHome.password, "wrong"])
    func aWrongPasswordIsTriedOnceByConcurrentTasks(_ password: String) async throws {
        let expected =
            "Authorization: Basic \(Data("\(LibraryHome.user):\(LibraryHome.password)".utf8).base64EncodedString())"
        let origin = try await PlainOrigin { request in
            request.contains(expected)
                ? PlainOrigin.response("200 OK")
                : PlainOrigin.response("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"")
        }
        let home = try LibraryHome(
            "\(origin.site) answer=basic plaintext=yes\n", credentials: ["enrollment": (LibraryHome.user, password)])
        let session = try Self.session(home)
        let url = try #require(URL(string: origin.site))
        let statuses = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<10 {
                group.addTask { (try? await session.data(from: url).1 as? HTTPURLResponse)?.statusCode }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        session.invalidateAndCancel()
        try await origin.stop()
        let tries = origin.requests.count { $0.contains("Authorization:") }
        if password == LibraryHome.password {
            #expect(statuses == [Int?](repeating: 200, count: 10))
        } else {
            #expect(tries == 1)
        }
    }

    /// The authorization of each request of a task, and its final status; nil if it ended without one.
    private static func outcome(
        _ challenges: [String], _ options: String = ""
    ) async throws -> (authorizations: [String], status: Int?) {
        let origin = try await PlainOrigin { request in
            guard !request.contains("Authorization:") else { return PlainOrigin.response("200 OK") }
            let fields = challenges.map { "\r\nWWW-Authenticate: \($0)" }.joined()
            return PlainOrigin.response("401 Unauthorized\(fields)")
        }
        let session = try Self.session(try LibraryHome("\(origin.site) plaintext=yes \(options)\n"))
        var request = URLRequest(url: try #require(URL(string: origin.site)))
        request.timeoutInterval = 10
        var status: Int?
        do {
            let (_, response) = try await session.data(for: request)
            status = (response as? HTTPURLResponse)?.statusCode
        } catch let error as URLError {
            #expect(error.code == .cancelled)
        }
        session.invalidateAndCancel()
        try await origin.stop()
        let authorizations = origin.requests.map { head in
            let lines = head.split(separator: "\r\n").filter { $0.hasPrefix("Authorization: ") }
            return lines.map { $0.dropFirst("Authorization: ".count).prefix { $0 != " " } }.joined(separator: "|")
        }
        return (authorizations, status)
    }

    @Test(arguments: ["Digest realm=\"r\", nonce=\"n\", qop=\"auth\"", "NTLM", "Negotiate", "Bearer realm=\"r\""])
    func challengesThatURLSessionDoesNotPassOnAreDeliveredAsTheirStatus(_ challenge: String) async throws {
        let (authorizations, status) = try await Self.outcome([challenge], "answer=basic,ntlm")
        #expect(authorizations == [""])
        #expect(status == 401)
    }

    @Test(arguments: [
        (["Negotiate", "Basic realm=\"r\""], "answer=basic,ntlm"),
        (["Basic realm=\"r\"", "NTLM"], "answer=basic,ntlm"),
        (["Negotiate, Basic realm=\"r\""], "answer=basic,ntlm"),
        (["Basic realm=\"r\", negotiate"], "answer=basic,ntlm"),
        // A field that cannot be parsed.
        (["Basic realm=\"r\", ="], "answer=basic"),
    ])
    func basicIsNotAnsweredIfTheLinePermitsAStrongerScheme(_ challenges: [String], _ options: String) async throws {
        let (authorizations, status) = try await Self.outcome(challenges, options)
        #expect(authorizations == [""])
        #expect(status == nil)
    }

    @Test(arguments: [
        (["Negotiate", "Basic realm=\"r\""], "answer=basic"), (["Basic realm=\"r\""], "answer=basic"),
        (["Digest realm=\"r\", nonce=\"n\"", "Basic realm=\"r\""], "answer=basic,ntlm"),
    ])
    func basicIsAnsweredIfNothingStrongerIsPermitted(_ challenges: [String], _ options: String) async throws {
        let (authorizations, status) = try await Self.outcome(challenges, options)
        #expect(authorizations == ["", "Basic"])
        #expect(status == 200)
    }

    // MARK: Challenges created by the test

    private final class Sender: NSObject, URLAuthenticationChallengeSender, Sendable {
        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
        func cancel(_ challenge: URLAuthenticationChallenge) {}
        func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
        func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
    }

    /// The delegate's answer to a challenge of `space`.
    private static func answer(
        _ home: LibraryHome, _ space: URLProtectionSpace
    ) async throws -> (URLSession.AuthChallengeDisposition, user: String?, password: String?) {
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
            sender: Sender())
        let answerer = URLSessionChallengeAnswerer(try home.controller())
        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: try #require(URL(string: "https://git.corp.example/")))
        return await withCheckedContinuation { continuation in
            answerer.urlSession(session, task: task, didReceive: challenge) { disposition, credential in
                continuation.resume(returning: (disposition, credential?.user, credential?.password))
            }
        }
    }

    @Test(arguments: [NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodDefault])
    func aProxysChallengeIsNotAnswered(_ method: String) async throws {
        let home = try LibraryHome("https://git.corp.example\n")
        let asked = URLProtectionSpace(
            host: "git.corp.example", port: 443, protocol: "https", realm: "r", authenticationMethod: method)
        let answered = try await Self.answer(home, asked)
        #expect(answered == (.useCredential, LibraryHome.user, LibraryHome.password))

        let proxy = URLProtectionSpace(
            proxyHost: "git.corp.example", port: 443, type: NSURLProtectionSpaceHTTPSProxy, realm: "r",
            authenticationMethod: method)
        let unnamed = URLProtectionSpace(
            host: "git.corp.example", port: 443, protocol: nil, realm: "r", authenticationMethod: method)
        for space in [proxy, unnamed] {
            let refused = try await Self.answer(home, space)
            #expect(refused == (.cancelAuthenticationChallenge, nil, nil))
        }
        let controller = try home.controller()
        #expect(throws: ChallengeError.self) { try controller.canHandle(Countersign.ProtectionSpace(proxy)) }
        #expect(Countersign.ProtectionSpace(proxy).authenticationMethod.schemes == [])
        #expect(Countersign.ProtectionSpace(unnamed).scheme == "")
    }
}
