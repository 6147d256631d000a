// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Kerberos with MIT's KDC, against Apache's mod_auth_gssapi and an acceptor that demands channel bindings. Nothing is
/// enrolled: the tickets are the user's own.
@Suite(.waiting) struct KerberosTests {
    private static let service = "HTTP/www.test.localhost"

    private let realm: KerberosRealm

    init() throws {
        realm = try KerberosRealm(
            services: [Self.service, "HTTP/other.test.localhost"], unkeyed: ["HTTP/unkeyed.test.localhost"])
    }

    /// A user who may answer at `url`.
    private func user(at url: String, _ options: String = "answer=negotiate") throws -> Countersign {
        let user = try Countersign()
        try user.allow("\(url) \(options)")
        return user
    }

    private func serve(_ user: Countersign, cache: String = "tickets") throws -> RunningProxy {
        try user.serve(environment: realm.environment(cache: cache))
    }

    // MARK: Apache

    /// curl answers Apache itself, so Apache and the KDC are set up correctly.
    @Test func curlAgreesWithApache() throws {
        let apache = try ApacheKerberosOrigin(realm)
        try realm.kinit(cache: "tickets")
        let flags = ["-q", "-sS", "--negotiate", "-u", ":", "-o", "/dev/null", "-w", "%{http_code}"]
        let done = try Command.run(
            try Tool.path("curl"), flags + ["--cacert", TestPKI.shared.originAnchor, apache.url + "/kerberos/index"],
            environment: realm.environment(cache: "tickets"), in: realm.folder)
        #expect(done.output == "200", "\(done.said)\(apache.errors)")
    }

    @Test(arguments: ["/kerberos/index", "/connection/index"]) func theUsersTicketAnswers(path: String) throws {
        let apache = try ApacheKerberosOrigin(realm)
        let user = try user(at: apache.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        for _ in 0..<3 {
            let seen = try proxy.get(apache.url + path)
            #expect(seen.status == 200 && seen.text == "apache \(path.dropFirst())\n", "\(seen.said)\(apache.errors)")
            #expect(seen.values("X-User") == ["\(KerberosRealm.user)@\(KerberosRealm.name)"])
            // The server's last token is for the proxy.
            #expect(seen.values("WWW-Authenticate") == [])
        }
        // Only the first request waits for a challenge.
        #expect(apache.log.requests(atLeast: 4).map(\.status) == [401, 200, 200, 200])
        #expect(realm.requests(for: Self.service).count == 1)
        let entries = try proxy.logged(site: apache.url, atLeast: 6).filter { $0.method == "GET" }
        #expect(entries.map(\.challenge) == ["negotiate", "negotiate", "negotiate"])
        #expect(entries.allSatisfy { $0.credential == "Kerberos ticket" })
    }

    /// All requests of one client use its connection, and each carries a token.
    @Test func severalRequestsOfOneConnectionAreAnswered() throws {
        let apache = try ApacheKerberosOrigin(realm)
        let user = try user(at: apache.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        let target = apache.url + "/kerberos/index"
        let seen = try proxy.get(target, flags: ["-o", "/dev/null", target, "-o", "/dev/null", target])
        #expect(seen.status == 200, "\(seen.said)\(apache.errors)")
        #expect(apache.log.requests(atLeast: 4).map(\.status) == [401, 200, 200, 200])
        // Apache counts the requests of a connection.
        #expect(apache.log.requests(atLeast: 4).map(\.connection) == [0, 1, 2, 3])
    }

    /// In HTTP/2 each request carries a token, whatever the server says about the connection.
    @Test(arguments: ["kerberos", "persistent", "request"], ["--http1.1", "--http2"])
    func requestsOverHTTP2AreAnswered(path: String, version: String) throws {
        let apache = try ApacheKerberosOrigin(realm, protocols: "h2 http/1.1")
        let user = try user(at: apache.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        let target = "\(apache.url)/\(path)/index"
        let seen = try proxy.get(target, flags: [version, "-o", "/dev/null", target, "-o", "/dev/null", target])
        #expect(seen.status == 200, "\(seen.said)\(apache.errors)")
        let entries = try proxy.logged(site: apache.url, atLeast: 4).filter { $0.method == "GET" }
        #expect(entries.map(\.challenge) == ["negotiate", "negotiate", "negotiate"])
        let requests = apache.log.requests(atLeast: 4)
        #expect(requests.map(\.status) == [401, 200, 200, 200], "\(apache.errors)")
        #expect(requests.map(\.auth) == ["-", "Negotiate", "Negotiate", "Negotiate"])
        #expect(TextFile.lines(proxy.accessLog).contains { $0.contains(#""origin_http":"2""#) })
    }

    /// Content that does not fit into memory is kept until the origin has challenged.
    @Test func theFirstRequestMayBeALargeUpload() throws {
        let origin = try BindingKerberosOrigin(realm)
        let user = try user(at: origin.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        let body = try user.folder.write("body", [UInt8](repeating: 0x61, count: 5_000_000))
        let seen = try proxy.send(.curl, HTTPClient.Request(method: "PUT", url: origin.url + "/", body: body))
        #expect(seen.text == "jdoe@CORP.TEST 5000000", "\(seen.said)")
    }

    /// The server says whether the connection is authenticated. If it is, it serves only its client.
    @Test(arguments: [
        ("persistent", ["-", "Negotiate", "-", "-", "Negotiate", "-", "-"]),
        ("request", ["-", "Negotiate", "Negotiate", "Negotiate", "Negotiate", "Negotiate", "Negotiate"]),
    ])
    func theServerSaysWhatATokenAuthenticates(path: String, kinds: [String]) throws {
        let apache = try ApacheKerberosOrigin(realm)
        let user = try user(at: apache.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        let target = "\(apache.url)/\(path)/index"
        for _ in 0..<2 {
            let seen = try proxy.get(target, flags: ["-o", "/dev/null", target, "-o", "/dev/null", target])
            #expect(seen.status == 200, "\(seen.said)\(apache.errors)")
            #expect(seen.values("Persistent-Auth") == [path == "persistent" ? "true" : "false"])
        }
        let requests = apache.log.requests(atLeast: 7)
        #expect(requests.map(\.status) == [401, 200, 200, 200, 200, 200, 200], "\(apache.errors)")
        #expect(requests.map(\.auth) == kinds)
        // Apache counts the requests of a connection.
        #expect(requests.map(\.connection) == [0, 1, 2, 3, 0, 1, 2])
    }

    @Test func contentIsSentWithTheToken() throws {
        let origin = try BindingKerberosOrigin(realm)
        let user = try user(at: origin.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        let body = try user.folder.write("body", [UInt8](repeating: 0x61, count: 70_000))
        for _ in 0..<2 {
            let seen = try proxy.send(.curl, HTTPClient.Request(method: "PUT", url: origin.url + "/", body: body))
            #expect(seen.text == "jdoe@CORP.TEST 70000", "\(seen.said)")
        }
        #expect(origin.log.requests.map(\.why) == ["no answer", nil, nil])
    }

    @Test func oneHundredRequestsAskTheKDCOnce() throws {
        let origin = try BindingKerberosOrigin(realm)
        let user = try user(at: origin.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        let urls = (0..<100).flatMap { ["-o", "/dev/null", "\(origin.url)/\($0)"] }
        let done = try Command.run(
            try Tool.path("curl"),
            [
                "-q", "-sS", "-Z", "--parallel-max", "100", "-x", proxy.url, "--cacert", proxy.anchor, "-w",
                "%{http_code} ",
            ]
                + urls, in: user.folder)
        #expect(done.output == String(repeating: "200 ", count: 100), "\(done.said)")
        #expect(realm.requests(for: Self.service).count == 1)
    }

    // MARK: Bindings and names

    @Test func theAnswerIsBoundToTheCertificate() throws {
        let origin = try BindingKerberosOrigin(realm)
        try realm.kinit(cache: "tickets")
        // This curl sends no bindings, so the origin does demand them.
        let curl = try Command.run(
            try Tool.path("curl"),
            [
                "-q", "-sS", "--negotiate", "-u", ":", "-o", "/dev/null", "-w", "%{http_code}", "--cacert",
                TestPKI.shared.originAnchor, origin.url,
            ], environment: realm.environment(cache: "tickets"), in: realm.folder)
        #expect(curl.output == "401", "\(curl.said)")
        #expect(origin.log.requests.last?.why == "no channel binding")
        let proxy = try serve(try user(at: origin.url))
        let seen = try proxy.get(origin.url)
        #expect(seen.text == "jdoe@CORP.TEST 0", "\(seen.said)")
    }

    @Test func theLineMayNameAnotherService() throws {
        let origin = try BindingKerberosOrigin(realm)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(try user(at: origin.url, "answer=negotiate spn=HTTP/other.test.localhost"))
        let seen = try proxy.get(origin.url)
        #expect(seen.text == "jdoe@CORP.TEST 0", "\(seen.said)")
        #expect(realm.requests(for: "HTTP/other.test.localhost").count == 1)
        #expect(realm.requests(for: Self.service).isEmpty)
    }

    // MARK: The server's proof

    /// Most acceptors prove nothing, and no response has to.
    @Test(arguments: ["unproven", "gokrb5", "blank", "twice", "raw", "cut"])
    func aServerNeedNotProveThatItHasTheKey(final: String) throws {
        let origin = try BindingKerberosOrigin(realm, ["final": final])
        try realm.kinit(cache: "tickets")
        let proxy = try serve(try user(at: origin.url))
        let seen = try proxy.get(origin.url)
        #expect(seen.text == "jdoe@CORP.TEST 0", "\(seen.said)")
        #expect(seen.proxyStatus.contains("did not prove that it knows the secret, too"), "\(seen.proxyStatus)")
    }

    @Test func aServerWithoutTheKeyIsDetected() throws {
        let origin = try BindingKerberosOrigin(realm, ["final": "damaged"])
        try realm.kinit(cache: "tickets")
        let proxy = try serve(try user(at: origin.url))
        let seen = try proxy.get(origin.url)
        #expect(seen.status == 502 && seen.proxyStatus.contains("last authentication token is wrong"), "\(seen.said)")
    }

    @Test func aServerMayLeaveOutItsLastToken() throws {
        let origin = try BindingKerberosOrigin(realm, ["final": "none"])
        try realm.kinit(cache: "tickets")
        let proxy = try serve(try user(at: origin.url))
        #expect(try proxy.get(origin.url).status == 200)
    }

    /// The token is for the proxy, even if the response switches protocols.
    @Test func aResponseThatSwitchesProtocolsIsAnswered() throws {
        let origin = try BindingKerberosOrigin(realm)
        let user = try user(at: origin.url)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        for _ in 0..<2 {
            let done = try Command.run(
                Tool.python(), [Tool.client("upgrade.py"), String(proxy.port), String(origin.port), proxy.anchor],
                in: user.folder)
            let lines = done.output.split(whereSeparator: \.isNewline)
            #expect(lines.first == "HTTP/1.1 101 Switching Protocols" && lines.last == "hello", "\(done.said)")
            #expect(!done.output.lowercased().contains("www-authenticate"), "\(done.output)")
        }
        #expect(origin.log.requests.map(\.why) == ["no answer", nil, nil])
    }

    // MARK: Errors

    private func refusal(
        _ options: String = "answer=negotiate", cache: String = "tickets", environment: [String: String] = [:]
    ) throws -> (status: Int, proxyStatus: String) {
        let origin = try BindingKerberosOrigin(realm)
        let user = try user(at: origin.url, options)
        let all = realm.environment(cache: cache).merging(environment) { $1 }
        let proxy = try user.serve(environment: all)
        let seen = try proxy.get(origin.url)
        #expect(origin.log.requests.allSatisfy { $0.auth == "-" })
        return (seen.status, seen.proxyStatus)
    }

    @Test func withoutATicketTheChallengeIsHandedBack() throws {
        let seen = try refusal()
        #expect(seen.status == 401 && seen.proxyStatus.contains("there is no Kerberos ticket; run kinit"), "\(seen)")
    }

    @Test func anExpiredTicketIsReported() throws {
        // A KDC accepts a ticket for another five minutes.
        let past = try FakeTime.environment(minutes: -20)
        try realm.restart(at: past)
        try realm.kinit(cache: "tickets", lifetime: "1m", environment: past)
        try realm.restart()
        let seen = try refusal()
        #expect(
            seen.status == 401 && seen.proxyStatus.contains("the Kerberos ticket has expired; run kinit"), "\(seen)")
    }

    @Test func anUnknownServiceIsReported() throws {
        try realm.kinit(cache: "tickets")
        let seen = try refusal("answer=negotiate spn=HTTP/nobody.test.localhost")
        #expect(
            seen.status == 401
                && seen.proxyStatus.contains("the KDC does not know the service HTTP/nobody.test.localhost"), "\(seen)")
    }

    @Test func anUnreachableKDCIsReported() throws {
        try realm.kinit(cache: "tickets")
        realm.stop()
        let seen = try refusal()
        #expect(seen.status == 401 && seen.proxyStatus.contains("no KDC responds"), "\(seen)")
    }

    @Test func aRefusedEncryptionTypeIsReported() throws {
        try realm.kinit(cache: "tickets")
        let conf = try realm.folder.write(
            "other.conf",
            KerberosRealm.configuration(
                kdc: "127.0.0.1:\(realm.port)",
                ["permitted_enctypes = camellia256-cts", "default_tgs_enctypes = camellia256-cts"]))
        let seen = try refusal(environment: ["KRB5_CONFIG": conf])
        #expect(seen.status == 401 && seen.proxyStatus.contains("no encryption type in common"), "\(seen)")
    }

    @Test func aFaultyConfigurationIsReported() throws {
        try realm.kinit(cache: "tickets")
        let conf = try realm.folder.write("faulty.conf", "[libdefaults]\n    default_realm\n[realms\n")
        let sentence = "\(conf) has a syntax error; correct it, or a file that it includes"
        let seen = try refusal(environment: ["KRB5_CONFIG": conf])
        #expect(seen.status == 401 && seen.proxyStatus.contains(sentence), "\(seen)")
        let explanation = try user(at: "https://www.test.localhost").run(
            "explain", "https://www.test.localhost/",
            environment: realm.environment(cache: "tickets").merging(["KRB5_CONFIG": conf]) { $1 })
        #expect(explanation.output.contains("no: \(sentence)"), "\(explanation.said)")
    }

    @Test func aWrongClockIsReported() throws {
        try realm.kinit(cache: "tickets")
        try realm.restart(at: FakeTime.environment(minutes: 20))
        let seen = try refusal()
        #expect(seen.status == 401 && seen.proxyStatus.contains("clock"), "\(seen)")
    }

    /// The server's token says why it rejects the ticket.
    @Test func theServersErrorIsReported() throws {
        let origin = try BindingKerberosOrigin(realm, ["errors": true])
        try realm.kinit(cache: "tickets")
        let proxy = try serve(try user(at: origin.url, "answer=negotiate spn=HTTP/unkeyed.test.localhost"))
        let seen = try proxy.get(origin.url)
        #expect(
            seen.status == 401 && seen.proxyStatus.contains("the server cannot decrypt the ticket"),
            "\(seen.said)\(seen.proxyStatus)")
        #expect(origin.log.requests.map(\.auth) == ["-", "Negotiate"])
    }

    // MARK: Limits

    /// The site sees one token, until there is another ticket.
    @Test func aTicketThatTheSiteRejectsIsNotSentAgain() throws {
        let origin = try BindingKerberosOrigin(realm)
        try realm.kinit(cache: "tickets")
        let proxy = try serve(try user(at: origin.url, "answer=negotiate spn=HTTP/unkeyed.test.localhost"))
        for number in 0..<3 {
            let seen = try proxy.get(origin.url)
            #expect(
                seen.status == 401 && seen.proxyStatus.contains("rejected") == true, "\(number): \(seen.proxyStatus)")
        }
        #expect(origin.log.requests.map(\.auth) == ["-", "Negotiate", "-", "-"])
        try realm.kinit(cache: "tickets", lifetime: "5m")
        for _ in 0..<2 { #expect(try proxy.get(origin.url).status == 401) }
        #expect(origin.log.requests.map(\.auth) == ["-", "Negotiate", "-", "-", "-", "Negotiate", "-"])
    }

    /// However long it is, a challenge is handed back whole if there is no ticket, and answered if there is one.
    @Test(arguments: [1000, 70_000, 3_000_000]) func aLongChallengeIsHandedBackOrAnswered(length: Int) throws {
        let origin = try BindingKerberosOrigin(realm, ["padding": length])
        let proxy = try serve(try user(at: origin.url))
        let seen = try proxy.get(origin.url)
        #expect(seen.status == 401 && seen.text.utf8.count == length, "\(seen.proxyStatus)")
        #expect(seen.proxyStatus.contains("there is no Kerberos ticket"))
        try realm.kinit(cache: "tickets")
        #expect(try proxy.get(origin.url).status == 200)
    }

    /// A KDC that never answers does not hold up other requests.
    @Test func aSilentKDCTimesOut() throws {
        let silent = try SilentListener()
        let origin = try BindingKerberosOrigin(realm)
        let plain = try ChallengingOrigin(.basic, user: Countersign.user, password: Countersign.password)
        let plainURL = "https://www.test.localhost:\(plain.port)"
        let user = try Countersign()
        try user.allow("\(origin.url) answer=negotiate", "\(plainURL) answer=basic")
        try user.enroll()
        try realm.kinit(cache: "tickets")
        let conf = try realm.folder.write(
            "silent.conf", KerberosRealm.configuration(kdc: "127.0.0.1:\(silent.port)"))
        let proxy = try user.serve(
            environment: realm.environment(cache: "tickets").merging(["KRB5_CONFIG": conf]) { $1 })
        let waiting = try ChildProcess(
            try Tool.path("curl"),
            ["-q", "-sS", "-i", "-x", proxy.url, "--cacert", proxy.anchor, origin.url], environment: [:],
            capture: user.folder.file("waiting"))
        // The KDC has been asked, and has not answered.
        #expect(silent.waitForMessage())
        let began = ContinuousClock.now
        #expect(try proxy.get(plainURL + "/").status != 401)
        #expect(ContinuousClock.now - began < .seconds(10))
        let seen = poll {
            let text = user.folder.text("waiting.out")
            return text.contains("\r\n\r\n") ? text : nil
        }
        #expect(
            seen?.contains("401") == true && seen?.contains("Kerberos took too long") == true, "\(seen ?? "nothing")")
        waiting.stop()
    }

    // MARK: Other schemes

    /// The server rejected nothing, so the next scheme that the line permits is tried.
    @Test func withoutATicketTheNextSchemeAnswers() throws {
        let origin = try ChallengingOrigin(.negotiate, user: Countersign.user, password: Countersign.password)
        try Data("content".utf8).write(to: URL(fileURLWithPath: origin.root + "/file"))
        let url = "https://www.test.localhost:\(origin.port)"
        let user = try user(at: url, "answer=negotiate,ntlm")
        try user.enroll()
        let seen = try serve(user).get(url + "/file")
        #expect(seen.status == 200 && seen.text == "content", "\(seen.said)\(seen.proxyStatus)")
    }

    /// A ticket that the server rejected is not followed by the password.
    @Test func afterARejectionNoOtherSchemeIsTried() throws {
        let origin = try BindingKerberosOrigin(realm, ["offers": ["Negotiate", "Basic realm=\"weaker\""]])
        let user = try user(at: origin.url, "answer=negotiate,basic spn=HTTP/unkeyed.test.localhost")
        try user.enroll()
        try realm.kinit(cache: "tickets")
        let seen = try serve(user).get(origin.url)
        #expect(seen.status == 401, "\(seen.said)")
        #expect(origin.log.requests.map(\.auth) == ["-", "Negotiate"])
    }

    /// The site refuses a ticket that was sent without a challenge, and offers only Basic.
    @Test func aTicketThatIsRefusedWithAWeakerOfferIsNotFollowedByThePassword() throws {
        let basic = "Basic realm=\"weaker\""
        let origin = try BindingKerberosOrigin(
            realm, ["offers": ["Negotiate", basic], "fallback": [basic], "accepts": 1])
        let user = try user(at: origin.url, "answer=negotiate,basic")
        try user.enroll()
        try realm.kinit(cache: "tickets")
        let proxy = try serve(user)
        #expect(try proxy.get(origin.url).status == 200)
        let seen = try proxy.get(origin.url)
        #expect(seen.status == 401 && seen.proxyStatus.contains("rejected"), "\(seen.said)\(seen.proxyStatus)")
        #expect(origin.log.requests.map(\.auth) == ["-", "Negotiate", "Negotiate", "-", "Negotiate"])
    }

    /// Where no KDC can be reached, no ticket is available. The response and the log say which scheme answered, and
    /// why.
    @Test func withoutAKDCTheNextSchemeAnswersAndSaysSo() throws {
        let origin = try ChallengingOrigin(.negotiate, user: Countersign.user, password: Countersign.password)
        try Data("content".utf8).write(to: URL(fileURLWithPath: origin.root + "/file"))
        let url = "https://www.test.localhost:\(origin.port)"
        let user = try user(at: url, "answer=negotiate,ntlm")
        try user.enroll()
        try realm.kinit(cache: "tickets")
        realm.stop()
        let proxy = try serve(user)
        let seen = try proxy.get(url + "/file")
        #expect(seen.status == 200 && seen.text == "content", "\(seen.said)\(seen.proxyStatus)")
        #expect(seen.proxyStatus.contains("answered with NTLM, because no KDC responds"), "\(seen.proxyStatus)")
        let entry = try proxy.logged(site: url, atLeast: 2).first { $0.method == "GET" }
        #expect(entry?.reason?.hasPrefix("answered with NTLM, because no KDC responds") == true)
    }

    /// A fault on this machine is not a missing ticket.
    @Test func withAWrongClockNoOtherSchemeAnswers() throws {
        let origin = try BindingKerberosOrigin(realm, ["offers": ["Negotiate", "Basic realm=\"weaker\""]])
        let user = try user(at: origin.url, "answer=negotiate,ntlm,basic")
        try user.enroll()
        try realm.kinit(cache: "tickets")
        try realm.restart(at: FakeTime.environment(minutes: 20))
        let seen = try serve(user).get(origin.url)
        #expect(seen.status == 401 && seen.proxyStatus.contains("clock"), "\(seen.said)\(seen.proxyStatus)")
        #expect(origin.log.requests.map(\.auth) == ["-"])
    }

    // MARK: explain

    @Test func explainShowsTheTicketAndItsEnd() throws {
        let user = try user(at: "https://www.test.localhost", "answer=negotiate")
        func explanation() throws -> String {
            try user.run(
                "explain", "https://www.test.localhost/", environment: realm.environment(cache: "tickets")
            ).output
        }
        #expect(try explanation().contains("no: there is no Kerberos ticket; run kinit"))
        try realm.kinit(cache: "tickets")
        let text = try explanation()
        #expect(text.contains("yes: Kerberos ticket of jdoe@CORP.TEST, valid until 2"), "\(text)")
    }
}
