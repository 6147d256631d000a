// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// The token and the certificate of a sign-in, while the device does not comply and after that.
@Suite(.waiting) struct WithheldTests {
    /// A person whose sign-in has obtained a certificate for a site of nginx, which requests one but does not require
    /// it.
    private struct CertificateBench {
        let service: ComplianceServer
        let user: Countersign
        let proxy: RunningProxy
        let site: String
        private let est: ESTServer
        private let provider: SignInProvider
        private let browser: String

        init() throws {
            let pki = try TestPKI.shared
            est = try ESTServer(#"{"auth": "bearer"}"#)
            try est.add(
                authority: "client-ca-a", certificate: pki.certificate("client-ca-a"), key: pki.key("client-ca-a"))
            try est.set(#"{"auth": "bearer", "issuer": "client-ca-a", "cacerts": ["ca", "client-ca-a"]}"#)
            service = try ComplianceServer(["script": "rules"])
            provider = try SignInProvider()
            user = try Countersign()
            site = "https://signed-in.test.localhost:\(try Origins.shared.nginx.optionalPort)"
            let certificates: [String: any Sendable] = [
                "server": est.address(), "sites": [site],
                "anchor": TextFile.text(est.certificate("ca")) + TextFile.text(pki.certificate("client-ca-a")),
            ]
            let profile = try user.folder.write(
                "profile.json",
                try provider.profile(["name": "work", "est": certificates, "compliance_service": ["url": service.url]]))
            browser = try user.folder.write(
                program: "browser", "#!/bin/sh\nexec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
            proxy = try user.serve()
            let done = try run("enroll", profile, "--yes")
            guard done.status == 0 else { throw HarnessError("enroll: \(done.said)") }
        }

        func run(_ words: String...) throws -> CommandResult {
            try user.run(words, environment: ["BROWSER": browser])
        }

        /// Waits until nginx reports `text` about the client's certificate, and returns its last report.
        func seen(until text: String) throws -> String {
            var seen = ""
            _ = try poll { () -> Bool? in
                seen = try proxy.get("\(site)/who").text
                return seen == text ? true : nil
            }
            return seen
        }
    }

    /// A connection that has presented it is not used meanwhile either.
    @Test func aCertificateIsNotPresentedUntilTheDeviceComplies() throws {
        let bench = try CertificateBench()
        let presented = "SUCCESS CN=jdoe@acme.example\n"
        #expect(try bench.seen(until: presented) == presented, "\(bench.proxy.process.errorOutput)")

        let refused = try bench.run("compliance", "remediate", "work")
        #expect(refused.status == 1, "\(refused.said)")
        #expect(try bench.seen(until: "NONE \n") == "NONE \n", "\(bench.proxy.process.errorOutput)")
        // It is still there.
        let listed = try bench.user.succeed("certificate", "list")
        #expect(listed.contains("jdoe@acme.example"), "\(listed)")
        let explained = try bench.user.run("explain", bench.site)
        #expect(explained.said.contains("does not comply"), "\(explained.said)")

        try bench.service.change(["script": "page"])
        let done = try bench.run("compliance", "remediate", "work")
        #expect(done.status == 0, "\(done.said)")
        #expect(try bench.seen(until: presented) == presented, "\(bench.proxy.process.errorOutput)")
    }

    @Test func aSessionsCookiesAreNotSentUntilTheDeviceComplies() throws {
        let service = try ComplianceServer(["script": "rules"], isTLS: true)
        let bench = try SharedSessionTests.Bench(compliance: service)
        _ = try bench.enrollTwice()
        #expect(try bench.who() == "jdoe")

        let refused = try bench.run("compliance", "remediate", "work")
        #expect(refused.status == 1, "\(refused.said)")
        #expect(try bench.isRecognised(as: "nobody"), "\(bench.proxy.process.errorOutput)")
        // It is still there, for the device to comply again.
        #expect(try bench.sessions.contains("sid"))

        try service.change(["script": "page"])
        let done = try bench.run("compliance", "remediate", "work")
        #expect(done.status == 0, "\(done.said)")
        #expect(try bench.isRecognised(as: "jdoe"), "\(bench.proxy.process.errorOutput)")
        #expect(bench.asked == 2, "nobody has signed in again")
    }

    /// A person that the identity broker signs in at Microsoft's page.
    private struct BrokerBench {
        let user: Countersign
        let proxy: RunningProxy
        private let page: BrokerPage
        private let broker: IdentityBroker

        init() throws {
            page = try BrokerPage()
            let accounts: [String: any Sendable] = ["accounts": [IdentityBroker.account("jdoe@corp.example")]]
            let cookie = ["cookieName": "x-ms-RefreshTokenCredential", "cookieContent": "canary-header"]
            broker = try IdentityBroker([
                "getAccounts": ["json": accounts],
                "acquireTokenSilently": IdentityBroker.token("at-1", expires: 4_000_000_000),
                "acquirePrtSsoCookie": ["json": cookie],
            ])
            let environment = ["DBUS_SESSION_BUS_ADDRESS": broker.address]
            user = try Countersign(anchors: [page.anchor])
            let profile = try user.folder.write(
                "profile.json",
                """
                {"name": "work", "issuer": "https://login.invalid/tenant/v2.0", "client_id": "app", "broker": true,
                 "scopes": ["api"], "sites": ["https://git.corp.example"]}
                """)
            let done = try user.run(["enroll", profile, "--yes"], environment: environment)
            guard done.status == 0 else { throw HarnessError("enroll: \(done.said)") }
            try user.allow("\(BrokerPage.url) answer=broker credential=work")
            proxy = try RunningProxy(user, [], environment: environment, prefix: try page.inside)
        }

        /// Waits until the page gets these headers when a browser opens it, and returns those that it got last, or why
        /// it was not reached.
        func seen(until text: String) throws -> String {
            let words =
                try page.inside + [
                    Tool.path("curl"), "-q", "-sS", "--max-time", "50", "-x", proxy.url, "--cacert", proxy.anchor, "-H",
                    "Sec-Fetch-Mode: navigate", "-H", "Sec-Fetch-Dest: document", "\(BrokerPage.url)/common",
                ]
            var seen = ""
            _ = try poll { () -> Bool? in
                let done = try Command.run(words[0], Array(words.dropFirst()), in: user.folder)
                seen = done.status == 0 ? done.output : done.said
                return seen == text ? true : nil
            }
            return seen
        }

        /// The outcome of a remediation: 0 for a device that complies.
        func note(status: UInt8) throws {
            let vault = try SealedVault(home: user.home).open { throw HarnessError("the vault has a passphrase") }
            try vault.update { contents in
                var record = ComplianceRecord(
                    name: "work", homeAccount: "", checked: Int64(Date().timeIntervalSince1970))
                if status != 0 { (record.status, record.title, record.message) = (status, "No", "Not yet.") }
                try contents.setCompliance(record)
            }
        }
    }

    @Test(.enabled(if: BrokerPage.isPossible, "unshare(1) cannot make a network here"))
    func theBrokersHeaderIsNotSentUntilTheDeviceComplies() throws {
        let bench = try BrokerBench()
        #expect(try bench.seen(until: "canary-header\n") == "canary-header\n", "\(bench.proxy.process.errorOutput)")
        try bench.note(status: 1)
        #expect(try bench.seen(until: "") == "", "\(bench.proxy.process.errorOutput)")
        try bench.note(status: 0)
        #expect(try bench.seen(until: "canary-header\n") == "canary-header\n", "\(bench.proxy.process.errorOutput)")
        #expect(!bench.proxy.process.errorOutput.contains("canary-header"))
    }
}
