// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// The effect of a trust exception for a bad origin, which applies to one host, port and certificate only.
@Suite(.waiting) struct TrustExceptionTests {
    /// A user with trust exceptions for all bad origins, added while the proxy was running, and that proxy.
    private final class Exceptions: Sendable {
        private static let ignoring = Result { try Exceptions { [try exception($0)] } }
        private static let answering = Result { try Exceptions { [try exception($0, answers: true)] } }
        private static let others = Result {
            try Exceptions { origin in
                [
                    try exception(origin, until: now - 60, answers: true),
                    try exception(origin, leaf: [UInt8](repeating: 0x55, count: 32), answers: true),
                    try exception(origin, port: 9, answers: true),
                    try exception(origin, host: "elsewhere.bad.localhost", answers: true),
                ]
            }
        }

        /// Exceptions without --answer.
        static var withoutAnswer: Exceptions { get throws { try ignoring.get() } }
        /// Exceptions with --answer.
        static var withAnswer: Exceptions { get throws { try answering.get() } }
        /// Exceptions with --answer that almost match: for another certificate, port or host, or expired a minute ago.
        static var notMatching: Exceptions { get throws { try others.get() } }

        let proxy: RunningProxy
        private let user: Countersign

        private init(_ decisions: (BadOrigin) throws -> [TrustExceptionRecord]) throws {
            user = try BadOriginSetting.shared.twin()
            proxy = try user.serve()
            let made = try BadOrigin.all.flatMap(decisions) + [Self.exception(.control)]
            let vault = try SealedVault(home: user.home).openOrCreate {
                throw HarnessError("unexpected request for a passphrase")
            }
            try vault.update { for decision in made { try $0.setTrustException(decision) } }
            guard try TrustExceptionTests.reaches("200", .control, "/open?control", proxy) else {
                throw HarnessError("serve does not apply a new trust exception")
            }
        }

        private static let now = Int64(Date().timeIntervalSince1970)

        private static func exception(
            _ origin: BadOrigin, host: String? = nil, port: UInt16? = nil, leaf: [UInt8]? = nil, until: Int64? = nil,
            answers: Bool = false
        ) throws -> TrustExceptionRecord {
            let setting = try BadOriginSetting.shared
            return TrustExceptionRecord(
                host: host ?? origin.host, port: try port ?? UInt16(setting.origins.port(origin.name)),
                leafSHA256: try leaf ?? setting.chain(origin).leafDigest, until: until, answers: answers, made: now)
        }
    }

    /// Whether the response has this status within a few seconds.
    private static func reaches(
        _ status: String, _ origin: BadOrigin, _ path: String, _ proxy: RunningProxy
    ) throws -> Bool {
        let setting = try BadOriginSetting.shared
        return try poll {
            try setting.absolute(origin, path, proxy: proxy.port).hasPrefix("HTTP/1.1 \(status) ") ? true : nil
        } ?? false
    }

    // MARK: Effect

    @Test(arguments: BadOrigin.all)
    func exceptionForwardsRequestsAndAnswersNothing(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let proxy = try Exceptions.withoutAnswer.proxy
        let place = try setting.place(origin)
        let open = try setting.absolute(origin, "/open?allowed", proxy: proxy.port)
        #expect(open.hasPrefix("HTTP/1.1 200 ") && open.hasSuffix(ChainOrigins.openText), "\(open)")
        // The client trusts only the interception CA.
        let flags = ["-o", "/dev/null", "-w", "%{http_code} ", "https://\(place)/open?allowed"]
        let seen = try proxy.get("https://\(place)/secret?allowed", flags: flags)
        #expect(seen.exit == 0 && seen.said.contains("\n200 401 \n"), "\(seen.said)")
        #expect(seen.values("WWW-Authenticate") == [ChainOrigins.challenge], "\(seen.said)")
        try Unanswered.expect(setting, origin, "allowed", ["/open", "/open", "/secret"])
    }

    @Test(arguments: BadOrigin.all)
    func exceptionWithAnswerAnswersChallenges(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let proxy = try Exceptions.withAnswer.proxy
        let seen = try proxy.get("https://\(setting.place(origin))/secret?answered")
        #expect(seen.exit == 0 && seen.status == 200 && seen.text == ChainOrigins.secretText, "\(seen.said)")
        let absolute = try setting.absolute(origin, "/secret?answered", proxy: proxy.port)
        #expect(absolute.hasPrefix("HTTP/1.1 200 ") && absolute.hasSuffix(ChainOrigins.secretText), "\(absolute)")
        let answered = try poll { () -> [LoggedRequest]? in
            let answered = try setting.logged(origin, "answered").filter { $0.status == 200 }
            return answered.count == 2 ? answered : nil
        }
        for request in try #require(answered) {
            #expect(request.user == Countersign.user && request.client?.contains("CN=laptop") == true, "\(request)")
        }
    }

    @Test(arguments: BadOrigin.all)
    func exceptionForAnotherCertificatePortHostOrTimeHasNoEffect(_ origin: BadOrigin) throws {
        let setting = try BadOriginSetting.shared
        let proxy = try Exceptions.notMatching.proxy
        let refused = try setting.absolute(origin, "/open?others", proxy: proxy.port)
        #expect(refused.hasPrefix("HTTP/1.1 502 ") && refused.contains("\"\(origin.quotedReason)\""), "\(refused)")
        let seen = try proxy.get("https://\(setting.place(origin))/open?others")
        #expect(seen.exit == 60 && seen.status == 0, "\(seen.said)")
        #expect(try setting.logged(origin, "others").isEmpty)
    }

    // MARK: The command

    @Test(arguments: ["expired", "wrong-address", "self-signed", "revoked", "revoked-by-staple"])
    func runningProxyAppliesTheCommand(_ name: String) throws {
        let setting = try BadOriginSetting.shared
        let origin = try #require(BadOrigin.all.first { $0.name == name })
        let place = try setting.place(origin)
        let fingerprint = try setting.chain(origin).fingerprint
        let user = try setting.twin()
        let proxy = try user.serve()
        #expect(try Self.reaches("502", origin, "/secret?command", proxy))
        let allowed = try user.succeed("trust", "allow", place, "--fingerprint", fingerprint, "--until", "2099-12-31")
        #expect(
            allowed == "\(place): \(fingerprint) is allowed until 2099-12-31T23:59:59Z, challenges are not answered\n")
        #expect(try Self.reaches("401", origin, "/secret?command", proxy))
        try Unanswered.expect(setting, origin, "command", ["/secret"])

        try user.succeed("trust", "allow", place, "--fingerprint", fingerprint, "--answer")
        let listed = try user.succeed("trust", "list", "--no-header")
        #expect(listed.hasPrefix("\(place)  \(fingerprint)  answered  no expiry "), "\(listed)")
        #expect(listed.split(separator: "\n").count == 1, "\(listed)")
        #expect(try Self.reaches("200", origin, "/secret?command", proxy))

        try user.succeed("trust", "forget", place)
        #expect(try Self.reaches("502", origin, "/open?command", proxy))
        #expect(try setting.absolute(origin, "/open?forgotten", proxy: proxy.port).hasPrefix("HTTP/1.1 502 "))
        #expect(try setting.logged(origin, "forgotten").isEmpty)
        let again = try user.run("trust", "forget", place)
        #expect(again.status == 1 && again.error.hasPrefix("countersign: error: there is no trust exception for "))
    }
}
