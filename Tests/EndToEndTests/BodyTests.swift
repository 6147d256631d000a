// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Request and response bodies with sites that challenge.
@Suite(.waiting) struct BodyTests {
    /// A site with one kind of challenge, with its own proxy and origin, so that each test starts without cached
    /// protection spaces.
    struct Site {
        let origin: ChallengingOrigin
        let proxy: RunningProxy
        let url: String

        init(_ mode: ChallengingOrigin.Mode, isTLS: Bool = true, flags: [String] = []) throws {
            origin = try .acme(mode, certificate: isTLS ? "server" : nil)
            let user = try Countersign()
            try user.enroll()
            url = "\(isTLS ? "https" : "http")://body.test.localhost:\(origin.port)"
            let options = (mode == .basic ? " answer=basic" : " domain=ACME") + (isTLS ? "" : " plaintext=yes")
            try user.allow(url + options)
            proxy = try RunningProxy(user, flags)
        }

        func post(_ body: String, _ method: String = "POST", flags: [String] = []) throws -> HTTPClient.Response {
            try proxy.send(.curl, HTTPClient.Request(method: method, url: "\(url)/echo", body: body, flags: flags))
        }
    }

    private static let modes: [ChallengingOrigin.Mode] = [.basic, .ntlm, .negotiate]

    /// A file to send, and the origin's expected response.
    private final class Body {
        let path: String
        let sum: String
        private let folder: TemporaryFolder

        init(folder: TemporaryFolder, path: String, sum: String) {
            self.folder = folder
            self.path = path
            self.sum = sum
        }
    }

    /// A file of `count` random bytes.
    private func body(_ count: Int) throws -> Body {
        let scratch = try TemporaryFolder()
        let path = scratch.file("body")
        let script = "head -c \(count) /dev/urandom > \"$0\"; sha256sum < \"$0\" | cut -d' ' -f1"
        let done = try Command.run("/bin/sh", ["-c", script, path], in: scratch)
        return Body(folder: scratch, path: path, sum: done.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    @Test(arguments: modes, [0, 1, 20_000, 900 * 1024, 1024 * 1024])
    func bodyWithinTheReplayLimitArrivesComplete(_ mode: ChallengingOrigin.Mode, _ count: Int) throws {
        let site = try Site(mode)
        let body = try body(count)
        for method in ["POST", "PUT"] {
            let seen = try site.post(body.path, method)
            #expect(
                seen.status == 200
                    && seen.text.contains("\"\(method)\", \"length\": \(count), \"sha256\": \"\(body.sum)\""),
                "\(seen.said)")
        }
    }

    /// The origin invites every body and challenges afterwards.
    @Test(arguments: modes, [(1 << 20) + 1, 5 << 20, 40 << 20])
    func bodyOverTheReplayLimitIsSentAgain(_ mode: ChallengingOrigin.Mode, _ count: Int) throws {
        let site = try Site(mode)
        let body = try body(count)
        let seen = try site.post(body.path)
        #expect(seen.status == 200 && seen.text.contains(body.sum), "\(seen.said)")
        let bodies = site.origin.log.requests.map { $0.received ?? -1 }
        #expect(bodies == (mode == .basic ? [count, count] : [count, 0, count]))
    }

    /// curl then neither waits for an invitation nor announces the length.
    @Test(arguments: modes)
    func largeChunkedUploadArrivesComplete(_ mode: ChallengingOrigin.Mode) throws {
        let site = try Site(mode)
        let body = try body(5 << 20)
        let seen = try site.post(body.path, flags: ["-H", "Transfer-Encoding: chunked", "-H", "Expect:"])
        #expect(seen.status == 200 && seen.text.contains(body.sum), "\(seen.said)")
    }

    /// Apache challenges without an invitation, so the body is sent once, however large it is.
    @Test func bodyThatIsNotInvitedIsSentOnce() throws {
        let origins = try Origins.shared
        let user = try Countersign()
        try user.enroll()
        let url = "https://once.test.localhost:\(origins.apache.httpsPort)"
        try user.allow(url)
        let proxy = try user.serve("--spool", "0")
        let body = try body(20 << 20)
        let seen = try proxy.send(
            .curl,
            HTTPClient.Request(
                method: "POST", url: "\(url)/basic/index?once", body: body.path, flags: ["-H", "Expect:"]))
        #expect(seen.status == 200, "\(seen.said)")
    }

    @Test func uploadIsNotSpooledWithoutAChallenge() throws {
        let site = try Site(.open, flags: ["--spool", "0"])
        let body = try body(5 << 20)
        let seen = try site.post(body.path)
        #expect(seen.status == 200 && seen.text.contains(body.sum), "\(seen.said)")
        #expect(site.origin.log.requests.count == 1)
    }

    /// A dialogue never begins without a challenge to the request itself, and this site invites content before that.
    @Test(arguments: modes, ["0", "2M"])
    func bodyOverTheSpoolsLimitPassesOnceTheAnswerGoesWithIt(_ mode: ChallengingOrigin.Mode, _ spool: String) throws {
        let site = try Site(mode, flags: ["--spool", spool])
        let body = try body(5 << 20)
        let first = try site.post(body.path)
        #expect(first.status == 401, "\(first.said)")
        #expect(first.proxyStatus.hasPrefix("countersign; details=\"not answered: "), "\(first.said)")
        #expect(site.origin.log.requests.allSatisfy { $0.auth == nil })
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
        let second = try site.post(body.path)
        if mode == .basic {
            #expect(second.status == 200 && second.text.contains(body.sum), "\(second.said)")
        } else {
            #expect(second.status == 401 && second.proxyStatus.contains("not answered: "), "\(second.said)")
        }
    }

    @Test(arguments: modes)
    func firstNTLMMessageCarriesNoBody(_ mode: ChallengingOrigin.Mode) throws {
        let site = try Site(mode)
        let body = try body(100_000)
        #expect(try site.post(body.path).status == 200)
        let legs = site.origin.log.requests.filter { $0.auth != nil }.map { "\($0.auth ?? "") \($0.received ?? -1)" }
        #expect(legs == (mode == .basic ? ["basic 100000"] : ["negotiate 0", "authenticate 100000"]))
    }

    @Test(arguments: modes, [10, 70_000])
    func chunkedUploadArrivesComplete(_ mode: ChallengingOrigin.Mode, _ count: Int) throws {
        let site = try Site(mode)
        let body = try body(count)
        let seen = try site.post(body.path, flags: ["-H", "Transfer-Encoding: chunked"])
        #expect(seen.status == 200 && seen.text.contains(body.sum), "\(seen.said)")
    }

    @Test(arguments: modes)
    func expectContinueIsSupported(_ mode: ChallengingOrigin.Mode) throws {
        let site = try Site(mode)
        let body = try body(200_000)
        let seen = try site.post(body.path, flags: ["-H", "Expect: 100-continue", "--expect100-timeout", "15"])
        #expect(seen.status == 200 && seen.text.contains(body.sum), "\(seen.said)")
    }

    @Test(arguments: modes, [204, 304])
    func responseWithoutABodyEndsAfterItsHead(_ mode: ChallengingOrigin.Mode, _ status: Int) throws {
        let site = try Site(mode)
        let url = "\(site.url)/status/\(status)?[1-2]"
        let seen = try site.proxy.get(url, flags: ["-w", "%{http_code} %{num_connects} "])
        #expect(seen.exit == 0 && seen.said.contains("\(status) 1 \(status) 0 "), "\(seen.said)")
    }

    @Test(arguments: modes, [0, 1, 70_000])
    func chunkedDownloadArrivesComplete(_ mode: ChallengingOrigin.Mode, _ count: Int) throws {
        let site = try Site(mode)
        let seen = try site.proxy.get("\(site.url)/chunked/\(count)")
        #expect(seen.status == 200 && seen.exit == 0 && seen.body.count == count, "\(seen.said)")
    }

    /// The origin's 50 MiB file, created once because the tests run concurrently.
    private static let made = Result {
        let made = try Command.run(
            "/bin/sh", ["-c", "head -c 52428800 /dev/urandom > big"], folder: Setting.shared.origins.nginx.root,
            in: TemporaryFolder("made"))
        guard made.status == 0 else { throw HarnessError("no file to download: \(made.said)") }
    }

    @Test(arguments: ["mutual", "tunnel", "plain"])
    func fiftyMebibyteDownloadIsUnchanged(_ way: String) throws {
        let setting = try Setting.shared
        let nginx = setting.origins.nginx
        let scratch = try TemporaryFolder("big")
        try Self.made.get()
        let (url, anchors) = try Self.big(way, nginx, setting)
        let copy = scratch.file("copy")
        let done = try Command.run(
            Tool.path("curl"), ["-q", "-sS", "-x", setting.proxy.url, "--cacert", anchors, "-o", copy, url], in: scratch
        )
        #expect(done.status == 0, "\(done.said)")
        let compared = try Command.run(Tool.path("cmp"), [copy, "\(nginx.root)/big"], in: scratch)
        #expect(compared.status == 0, "\(compared.said)")
    }

    private static func big(_ way: String, _ nginx: NginxOrigin, _ setting: Setting) throws -> (String, String) {
        switch way {
        case "mutual": ("https://cert13.test.localhost:\(nginx.mutual13Port)/big", setting.proxy.anchor)
        case "tunnel": ("https://unlisted.test.localhost:\(nginx.httpsPort)/big", try TestPKI.shared.originAnchor)
        default: ("http://unlisted.test.localhost:\(nginx.httpPort)/big", setting.proxy.anchor)
        }
    }

    @Test func fiftyMebibyteUploadIsUnchangedOnceTheSpaceIsKnown() throws {
        let site = try Site(.basic)
        #expect(try site.proxy.get("\(site.url)/echo").status == 200)
        let body = try body(50 << 20)
        let seen = try site.post(body.path)
        #expect(seen.status == 200 && seen.text.contains(body.sum), "\(seen.said)")
    }
}
