// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignNTLM

/// NTLM: the client's two messages, NTLMv2 with channel binding, for a challenge as a domain member running Windows
/// Server 2019 sends it.
enum NTLMBenchmarks {
    static let groups = [BenchmarkGroup(prefix: "ntlm", make: dialogue)]

    private static func dialogue() throws -> [Benchmark] {
        let clientChallenge: [UInt8] = [0x5A, 0x3B, 0x91, 0x07, 0xEE, 0x42, 0xC8, 0x1D]
        let sessionKey = [UInt8](0xA0..<0xB0)
        let now: UInt64 = 133_766_589_120_000_000
        var negotiated = try context()
        keep(negotiated.negotiate())
        let challenge = try serverChallenge(at: now)
        var answering = negotiated
        let answer = try answering.authenticate(
            challenge, now: now, clientChallenge: clientChallenge, exportedSessionKey: sessionKey)
        guard answer.count > 400 else { throw SetUpFailure("an AuthenticateMessage of \(answer.count) bytes") }
        return [
            Benchmark("ntlm-negotiate", .atMost) {
                var context = try context()
                keep(context.negotiate())
            },
            Benchmark("ntlm-authenticate", .atMost) { [negotiated] in
                var context = negotiated
                keep(
                    try context.authenticate(
                        challenge, now: now, clientChallenge: clientChallenge, exportedSessionKey: sessionKey))
            },
        ]
    }

    private static func context() throws(NTLMError) -> NTLMContext {
        try NTLMContext(
            credential: ChallengeBenchmarks.credential, domain: "ACME",
            servicePrincipalName: "HTTP/intranet.acme.example", channelBinding: binding, workstation: "WS0417",
            framing: .raw)
    }

    private static let binding = ChannelBinding.tlsServerEndPoint(certificateHash: Array(0x40..<0x60))

    private static func serverChallenge(at time: UInt64) throws -> [UInt8] {
        let names = TargetInfo([
            AVPair(.nbDomainName, text: "ACME"), AVPair(.nbComputerName, text: "IIS01"),
            AVPair(.dnsDomainName, text: "acme.example"), AVPair(.dnsComputerName, text: "iis01.acme.example"),
            AVPair(.dnsTreeName, text: "acme.example"),
            AVPair(.timestamp, withUnsafeBytes(of: time.littleEndian) { Array($0) }),
        ])
        return try ChallengeMessage(
            flags: NegotiateFlags(rawValue: 0xE289_8215), serverChallenge: Array(1...8), targetName: "ACME",
            targetInfo: names, version: Version(major: 10, minor: 0, build: 17763)
        ).serialized()
    }
}
