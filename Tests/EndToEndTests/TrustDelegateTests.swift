// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The library's delegate for each bad origin: it receives all details; a no ends the request; a yes forwards it
/// without answering challenges. The proxy with the delegate is Tests/DelegatingProxy.
@Suite(.waiting) struct TrustDelegateTests {
    private struct Question: Decodable {
        let place: String
        let reasons: [String]
        let chain: [String]
        let address: String
        let tls: String
    }

    /// A proxy whose delegate always gives the same answer.
    private final class Delegating: Sendable {
        private static let refusing = Result { try Delegating("no", user: BadOriginSetting.shared.user) }
        private static let proceeding = Result { try Delegating("yes", user: BadOriginSetting.shared.user) }

        static var saysNo: Delegating { get throws { try refusing.get() } }
        static var saysYes: Delegating { get throws { try proceeding.get() } }

        let port: Int
        private let process: ChildProcess
        private let folder: TemporaryFolder

        init(_ word: String, user: Countersign, seconds: Int = 30) throws {
            folder = try TemporaryFolder("delegating")
            let program = URL(fileURLWithPath: try Countersign.executable).deletingLastPathComponent().path
            process = try ChildProcess(
                "\(program)/CountersignDelegatingProxy", [user.home, word, "\(seconds)"], capture: folder.file("proxy"))
            port = try Int(process.line(after: "listening 127.0.0.1:")) ?? 0
        }

        func questions(about place: String) throws -> [Question] {
            try process.output.split(separator: "\n").filter { $0.contains("\"\(place)\"") }.map { line in
                try JSONDecoder().decode(Question.self, from: Data(line.utf8))
            }.filter { $0.place == place }
        }
    }

    private func expectQuestions(_ delegating: Delegating, _ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let place = try setting.place(origin)
        let questions = try delegating.questions(about: place)
        let chain = try setting.chain(origin).certificates
        let address = "127.0.0.1:\(try setting.origins.port(origin.name))"
        #expect(questions.count == 2, "\(questions)")
        for question in questions {
            #expect(question.reasons == origin.reasons && question.chain == chain, "\(question)")
            #expect(question.address == address && question.tls == "TLSv1.3", "\(question)")
        }
    }

    @Test(arguments: BadOrigin.all)
    func noEndsTheRequestBeforeAnythingIsSent(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let delegating = try Delegating.saysNo
        let refused = try setting.absolute(origin, "/open?no", proxy: delegating.port)
        #expect(refused.hasPrefix("HTTP/1.1 502 ") && refused.contains("application/problem+json"), "\(refused)")
        #expect(refused.contains("\"\(origin.quotedReason)\""), "\(refused)")
        let tunnel = try HTTPClient.curl.send(
            HTTPClient.Request(url: "https://\(setting.place(origin))/open?no", isInsecure: true),
            proxy: "http://127.0.0.1:\(delegating.port)", anchors: setting.proxy.anchor)
        #expect(tunnel.exit == 56 && tunnel.status == 0 && tunnel.said.contains("response 502"), "\(tunnel.said)")
        try expectQuestions(delegating, origin)
        #expect(try setting.logged(origin, "no").isEmpty)
    }

    @Test(arguments: BadOrigin.all)
    func yesForwardsTheRequestAndAnswersNothing(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let delegating = try Delegating.saysYes
        let place = try setting.place(origin)
        let open = try setting.absolute(origin, "/open?yes", proxy: delegating.port)
        #expect(open.hasPrefix("HTTP/1.1 200 ") && open.hasSuffix(ChainOrigins.openText), "\(open)")
        // The client trusts the interception CA, so the delegate's decision takes the place of its own.
        let flags = ["-o", "/dev/null", "-w", "%{http_code} ", "https://\(place)/open?yes"]
        let seen = try HTTPClient.curl.send(
            HTTPClient.Request(url: "https://\(place)/secret?yes", flags: flags),
            proxy: "http://127.0.0.1:\(delegating.port)", anchors: setting.proxy.anchor)
        #expect(seen.exit == 0 && seen.said.contains("\n200 401 \n"), "\(seen.said)")
        #expect(seen.values("WWW-Authenticate") == [ChainOrigins.challenge], "\(seen.said)")
        try expectQuestions(delegating, origin)
        try Unanswered.expect(setting, origin, "yes", ["/open", "/open", "/secret"])
    }

    @Test func handshakeWaitsForTheDecision() throws {
        let setting = try BadOriginSetting.shared
        let origin = BadOrigin.all[0]
        let place = try setting.place(origin)
        let file = setting.user.folder.file("decided")
        let delegating = try Delegating(file, user: setting.user)
        let connection = try RawConnection(port: delegating.port)
        try connection.send("GET https://\(place)/open?waits HTTP/1.1\r\nHost: \(place)\r\nConnection: close\r\n\r\n")
        let asked = try poll { try delegating.questions(about: place).isEmpty ? nil : true }
        #expect(asked == true)
        #expect(connection.receive(seconds: 0.5).isEmpty)
        #expect(try setting.logged(origin, "waits").isEmpty)
        try setting.user.folder.write("decided", "yes\n")
        let seen = connection.receive()
        #expect(seen.hasPrefix("HTTP/1.1 200 "), "\(seen)")
        try Unanswered.expect(setting, origin, "waits", ["/open"])
    }

    @Test func missingDecisionIsANo() throws {
        let setting = try BadOriginSetting.shared
        let origin = BadOrigin.all[0]
        let delegating = try Delegating(setting.user.folder.file("never"), user: setting.user, seconds: 1)
        let refused = try setting.absolute(origin, "/open?never", proxy: delegating.port)
        #expect(refused.hasPrefix("HTTP/1.1 502 ") && refused.contains("application/problem+json"), "\(refused)")
        #expect(try setting.logged(origin, "never").isEmpty)
    }
}
