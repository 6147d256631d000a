// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import FoundationEssentials
import CountersignSPNEGO
import Testing

@testable import CountersignDemo
@testable import CountersignNTLM

/// `Tests/Fixtures/ntlm/*.txt`: dialogues with other implementations, replayed byte by byte. Each line has the form
/// `name: value`; tokens are in hexadecimal.
struct RecordedExchange: CustomTestStringConvertible, Sendable {
    let testDescription: String
    private let values: [String: String]

    static let all: [RecordedExchange] = {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fixtures/ntlm")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted().compactMap { name in
            (try? String(contentsOf: folder.appending(path: name), encoding: .utf8)).map { RecordedExchange(name, $0) }
        }
    }()

    private init(_ name: String, _ text: String) {
        testDescription = name
        var values: [String: String] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: ":", maxSplits: 1)
            values[String(parts[0])] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        self.values = values
    }

    func text(_ name: String) throws -> String {
        try #require(values[name], "\(testDescription) has no \(name)")
    }

    func bytes(_ name: String) throws -> [UInt8] {
        try #require(Hex.decode(try text(name)), "\(testDescription): \(name) is not hexadecimal")
    }

    func binding() throws -> ChannelBinding? {
        let data = try bytes("binding")
        let prefix = Array("tls-server-end-point:".utf8)
        guard !data.isEmpty else { return nil }
        #expect(data.starts(with: prefix))
        return .tlsServerEndPoint(certificateHash: Array(data.dropFirst(prefix.count)))
    }
}

@Suite struct RecordedExchangeTests {
    private static func recorded(role: String) -> [RecordedExchange] {
        RecordedExchange.all.filter { (try? $0.text("role")) == role }
    }

    @Test func theRecordsAreThere() {
        #expect(Self.recorded(role: "initiator").count >= 5)
        #expect(Self.recorded(role: "acceptor").count >= 2)
    }

    @Test(arguments: recorded(role: "initiator"))
    func theClientSaysAgainWhatWasAccepted(_ record: RecordedExchange) throws {
        let domain = try record.text("domain")
        var client = try NTLMContext(
            credential: PasswordCredential(
                name: "enrollment", user: try record.text("user"), password: Secret(utf8: try record.text("password")),
                generation: 1),
            domain: domain.isEmpty ? nil : domain, servicePrincipalName: try record.text("spn"),
            channelBinding: try record.binding(), workstation: try record.text("workstation"),
            framing: try record.text("framing") == "raw" ? .raw : .spnego)
        #expect(client.negotiate() == (try record.bytes("negotiate")))
        let answer = try client.authenticate(
            try record.bytes("challenge"), now: try #require(UInt64(try record.text("now"))),
            clientChallenge: try record.bytes("client-challenge"), exportedSessionKey: try record.bytes("session-key"))
        let recorded = try record.text("authenticate")
        #expect(Hex.encode(answer) == recorded)
        #expect(try client.conclude(try record.bytes("final")) == nil)
    }

    @Test(arguments: recorded(role: "acceptor"))
    func theAcceptorSaysAgainWhatWasTaken(_ record: RecordedExchange) throws {
        let recorded = try record.bytes("challenge")
        let isRaw = try record.text("framing") == "raw"
        let message = try ChallengeMessage(
            parsing: isRaw ? recorded : try #require(try NegTokenResp(parsing: recorded).responseToken))
        var acceptor = NTLMAcceptor(
            targetName: try #require(UTF16Text.decode(message.targetName)), targetInfo: message.targetInfo)
        let challenge = try acceptor.challenge(
            try record.bytes("negotiate"), serverChallenge: try record.bytes("server-challenge"))
        #expect(Hex.encode(challenge) == Hex.encode(recorded))
        let client = try acceptor.verify(
            try record.bytes("authenticate"), password: Secret(utf8: try record.text("password")),
            requiring: NTLMAcceptor.Requirements(
                channelBinding: try record.binding(), servicePrincipalName: try record.text("spn"), mic: true))
        #expect(client.user == (try record.text("user")))
        #expect(client.domain == (try record.text("domain")))
        #expect(Hex.encode(client.finalToken) == (try record.text("final")))
    }
}
