// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Countersign
import CountersignHome
import CountersignNIO
import Foundation
import Logging
import CountersignProxy
import CountersignTLS
import CountersignVault

/// Runs a proxy with a delegate that decides about unverified servers: `DelegatingProxy HOME yes|no|FILE [SECONDS]`.
///
/// Prints `listening 127.0.0.1:PORT`, then each question as a line of JSON. Instead of answering yes or no immediately,
/// it can wait until FILE exists and then answer yes; SECONDS is how long the proxy waits for an answer.
@main struct DelegatingProxy {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else { throw Misuse() }
        let keeper = try PolicyKeeper(
            home: Home(path: arguments[1]), interception: .whenNeeded, environment: [:],
            logger: Logger(label: "countersign"), now: { Int64(time(nil)) },
            passphrase: { throw VaultError(.passphraseNeeded, "there is no terminal") })
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        if arguments.count > 3, let seconds = Int64(arguments[3]) { configuration.trustQuestion = .seconds(seconds) }
        let runtime = try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
            serverTrustDelegate: Decider(word: arguments[2]), logger: Logger(label: "countersign"))
        say(Array("listening \(runtime.addresses[0])\n".utf8))
        while true { try await Task.sleep(for: .seconds(3600)) }
    }

    /// Writes with one system call, so that lines are not interleaved.
    fileprivate static func say(_ line: [UInt8]) { _ = write(1, line, line.count) }

    private struct Misuse: Error {}
}

private struct Decider: CountersignProxy.ServerTrustDecider {
    let word: String

    private struct Question: Encodable {
        let place: String
        let reasons: [String]
        let chain: [String]
        let address: String
        let tls: String
    }

    func decide(_ question: CountersignProxy.UntrustedServer) async -> TrustAnswer {
        let description = Question(
            place: "\(question.host):\(question.port)",
            reasons: question.trust.reasons.map { question.trust.text(of: $0) },
            chain: question.trust.chain.map(\.pem), address: question.address, tls: question.tlsVersion)
        if let line = try? JSONEncoder().encode(description) { DelegatingProxy.say(Array(line) + [0x0A]) }
        switch word {
        case "yes": return .proceed(answering: true)
        case "no": return .refuse
        default:
            while access(word, F_OK) != 0 {
                guard (try? await Task.sleep(for: .milliseconds(20))) != nil else { return .refuse }
            }
            return .proceed(answering: true)
        }
    }
}
