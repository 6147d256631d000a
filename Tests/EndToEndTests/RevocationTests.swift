// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Sites whose certificates name an OCSP responder or a revocation list on loopback, below an anchor of the user.
@Suite(.waiting) struct RevocationTests {
    /// An authority, the servers that publish its statuses, sites with its certificates, and a user who trusts it.
    private struct Scene {
        let authority: OpenSSLAuthority
        let statuses: StatusServer
        let origins: ChainOrigins
        let user: Countersign
        let proxy: RunningProxy

        /// `sites` are names, with the path that each certificate names and whether it is revoked. `options` are
        /// those of every line. With `behindParent`, the statuses are on a host that only a parent knows, which demands
        /// Basic.
        init(
            _ sites: [(name: String, source: String, isRevoked: Bool)], options: String = "",
            behindParent: Bool = false, reply: (@Sendable (StatusServer.Request) -> StatusServer.Reply?)? = nil
        ) throws {
            let authority = try OpenSSLAuthority()
            try authority.make("root", of: "root", OpenSSLAuthority.authority)
            try authority.make("responder", of: "root", OpenSSLAuthority.responder)
            let list = TemporaryList()
            let answer = "Basic " + Data("\(SquidParent.user):\(SquidParent.password)".utf8).base64EncodedString()
            let statuses = try StatusServer { request in
                if behindParent, !request.fields.contains("Proxy-Authorization: \(answer)") {
                    return .status(407, fields: ["Proxy-Authenticate: Basic realm=\"corp\""])
                }
                if let own = reply?(request) { return own }
                if request.method == "GET" { return .body(list.bytes) }
                let response = try? authority.makeResponse(
                    "r\(UInt64.random(in: 0..<UInt64.max))", to: request.body, of: "root", signedBy: "responder")
                return response.map { .body($0) } ?? .status(500, fields: [])
            }
            for (name, source, _) in sites {
                let url = behindParent ? "http://status.corp.invalid\(source)" : statuses.url(source)
                try authority.make(
                    name, of: "root",
                    ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature"]
                        + ["extendedKeyUsage=serverAuth", "subjectAltName=DNS:\(name).test.localhost"]
                        + [
                            source.hasPrefix("/crl")
                                ? "crlDistributionPoints=URI:\(url)" : "authorityInfoAccess=OCSP;URI:\(url)"
                        ])
            }
            for site in sites where site.isRevoked { try authority.revoke(site.name, of: "root") }
            list.bytes = try authority.makeList("root.crl", of: "root", from: Self.day(-1), until: Self.day(1))
            origins = try ChainOrigins(
                sites.map {
                    .init(
                        $0.name, certificate: authority.path("\($0.name).pem"),
                        key: authority.path("\($0.name).key.pem"))
                }, user: Countersign.user, password: Countersign.password)
            user = try Countersign(anchors: [authority.path("root.pem")])
            try user.enroll()
            for site in sites {
                try user.allow("https://\(site.name).test.localhost:\(try origins.port(site.name)) \(options)")
            }
            if behindParent {
                try user.enroll(SquidParent.user, password: SquidParent.password, name: "corp")
                try user.allow("proxy://127.0.0.1:\(statuses.port) credential=corp plaintext=yes")
            }
            let flags = ["--parent", "http://127.0.0.1:\(statuses.port)", "--no-proxy", ".test.localhost"]
            // Nothing is fetched through a proxy of a variable: this one does not exist.
            proxy = try RunningProxy(
                user, behindParent ? flags : [],
                environment: ["http_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9"])
            self.authority = authority
            self.statuses = statuses
        }

        private static func day(_ offset: Double) -> String {
            let format = DateFormatter()
            format.timeZone = TimeZone(identifier: "UTC")
            format.locale = Locale(identifier: "en_US_POSIX")
            format.dateFormat = "yyyyMMddHHmmss'Z'"
            return format.string(from: Date().addingTimeInterval(offset * 86_400))
        }

        func url(_ name: String) throws -> String { "https://\(name).test.localhost:\(try origins.port(name))" }

        /// The whole response to a request in absolute form.
        func absolute(_ name: String) throws -> String {
            let place = "\(name).test.localhost:\(try origins.port(name))"
            let connection = try RawConnection(port: proxy.port)
            try connection.send("GET https://\(place)/open HTTP/1.1\r\nHost: \(place)\r\nConnection: close\r\n\r\n")
            return connection.receive()
        }

        var said: String { TextFile.text(proxy.process.errorPath) }
    }

    /// A list that is made after the server was started.
    private final class TemporaryList: @unchecked Sendable {
        private let lock = NSLock()
        private var stored: [UInt8] = []

        var bytes: [UInt8] {
            get { lock.withLock { stored } }
            set { lock.withLock { stored = newValue } }
        }
    }

    @Test func statusesAreFetchedThroughAParentThatDemandsAPassword() throws {
        let scene = try Scene(
            [("good-ocsp", "/ocsp", false), ("bad-crl", "/crl", true)], options: "revocation=require",
            behindParent: true)
        let seen = try scene.proxy.get("\(scene.url("good-ocsp"))/secret")
        #expect(seen.status == 200, "\(seen.said)\(scene.said)")
        let refused = try scene.proxy.get("\(scene.url("bad-crl"))/secret")
        #expect(refused.exit == 60 && refused.status == 0, "\(refused.said)")
        let paths = scene.statuses.requests.map(\.path)
        #expect(paths.allSatisfy { $0.hasPrefix("http://status.corp.invalid/") }, "\(paths)")
        #expect(Set(paths).count == 2 && paths.count <= 4, "\(paths)")
    }

    @Test func aRevokedCertificateGoesToTheCaller() throws {
        let scene = try Scene([
            ("good-ocsp", "/ocsp", false), ("bad-ocsp", "/ocsp", true), ("good-crl", "/crl", false),
            ("bad-crl", "/crl", true),
        ])
        for name in ["good-ocsp", "good-crl"] {
            let seen = try scene.proxy.get("\(scene.url(name))/secret")
            #expect(seen.status == 200, "\(seen.said)")
            let logged = try scene.proxy.logged(site: scene.url(name))
            #expect(logged.first?.revocation == "good")
        }
        for (name, by) in [("bad-ocsp", "ocsp"), ("bad-crl", "revocation-list")] {
            let seen = try scene.proxy.get("\(scene.url(name))/secret")
            #expect(seen.exit == 60 && seen.status == 0, "\(seen.said)")
            let refused = try scene.absolute(name)
            #expect(refused.hasPrefix("HTTP/1.1 502 "), "\(refused)")
            let start = "Proxy-Status: countersign; error=tls_certificate_error; details=\"certificate revoked 2"
            #expect(refused.contains(start) && refused.contains(#" by \"CN=root\"""#), "\(refused)")
            #expect(refused.contains(#""code":"revoked""#) && refused.contains(#""by":"\#(by)""#), "\(refused)")
            #expect(try scene.origins.logged(name, query: "").isEmpty)
            #expect(try scene.proxy.logged(site: scene.url(name)).contains { $0.revocation == "revoked" })
        }
        #expect(scene.said.contains("does not verify: certificate revoked"), "\(scene.said)")
    }

    /// The status is requested once, and kept for the next process.
    @Test func statusesAreCachedInTheHome() throws {
        let scene = try Scene([("site", "/ocsp", false), ("listed", "/crl", false)])
        for _ in 0..<3 {
            for name in ["site", "listed"] { #expect(try scene.proxy.get("\(scene.url(name))/open").status == 200) }
        }
        #expect(scene.statuses.requests.count == 2)
        let tested = try scene.user.run("test", scene.url("site"))
        #expect(tested.output.contains("revocation  good, by the OCSP responder http://127.0.0.1:"), "\(tested.said)")
        #expect(scene.statuses.requests.count == 2)
        let folder = scene.user.home + "/revocation"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(names.count == 2)
        for path in names.map({ "\(folder)/\($0)" }) {
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        }
        #expect(try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions] as? Int == 0o700)
    }

    @Test func anUnknownStatusIsLoggedAndDoesNotStopARequest() throws {
        let scene = try Scene([("site", "/ocsp", false)]) { _ in .status(500, fields: []) }
        #expect(try scene.proxy.get("\(scene.url("site"))/secret").status == 200)
        #expect(try scene.proxy.logged(site: scene.url("site")).first?.revocation == "unknown")
        let text = "the revocation status of \(try scene.url("site")) is unknown: no stapled OCSP response, "
        #expect(scene.said.contains(text) && scene.said.contains("answered with the status 500"), "\(scene.said)")
    }

    @Test func aRequiredStatusMustBeKnown() throws {
        let scene = try Scene([("good", "/ocsp", false), ("lost", "/lost", false)], options: "revocation=require") {
            $0.path == "/lost" ? .status(503, fields: []) : nil
        }
        #expect(try scene.proxy.get("\(scene.url("good"))/secret").status == 200)
        let refused = try scene.absolute("lost")
        #expect(refused.hasPrefix("HTTP/1.1 502 "), "\(refused)")
        #expect(refused.contains("details=\"revocation status unknown: "), "\(refused)")
        #expect(refused.contains(#""code":"revocation-unknown""#), "\(refused)")
        // The option takes effect on the next connection.
        try scene.user.writeSites("\(scene.url("lost")) revocation=off\n")
        let isOpen = try poll {
            try scene.absolute("lost").hasPrefix("HTTP/1.1 200 ") ? true : nil
        }
        #expect(isOpen == true)
    }

    /// A responder that does not answer delays the first connection to its site a little, and no other exchange.
    @Test func aSilentResponderDelaysNobodyElse() throws {
        let scene = try Scene([("slow", "/silence", false), ("quick", "/ocsp", false)]) {
            $0.path == "/silence" ? .silence : nil
        }
        #expect(try scene.proxy.get("\(scene.url("quick"))/open").status == 200)
        let started = ContinuousClock.now
        let slow = Thread.running { try? scene.proxy.get("\(scene.url("slow"))/open").status }
        var quick = 0
        while slow.value == nil {
            #expect(try scene.proxy.get("\(scene.url("quick"))/open").status == 200)
            if slow.value == nil { quick += 1 }
        }
        #expect(slow.value == 200 && ContinuousClock.now - started >= .milliseconds(1_500))
        #expect(quick > 0)
        // The wait has passed already. On a busy machine, the start of curl may take as long.
        let again = try (0..<5).map { _ throws -> Duration in
            let before = ContinuousClock.now
            #expect(try scene.proxy.get("\(scene.url("slow"))/open").status == 200)
            return ContinuousClock.now - before
        }
        #expect(again.contains { $0 < .milliseconds(1_400) }, "\(again)")
    }
}

/// The result of a function that runs on a thread of its own.
private final class Running<Value: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var stored: Value?

    var value: Value? {
        get { lock.withLock { stored } }
        set { lock.withLock { stored = newValue } }
    }
}

extension Thread {
    fileprivate static func running<Value: Sendable>(_ body: @escaping @Sendable () -> Value?) -> Running<Value> {
        let running = Running<Value>()
        detachNewThread { running.value = body() }
        return running
    }
}
