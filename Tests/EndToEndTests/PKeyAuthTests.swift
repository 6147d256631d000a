// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// PKeyAuth at an origin that verifies the signed token with another implementation.
@Suite(.waiting) struct PKeyAuthTests {
    private struct Bench {
        let origin: DeviceOrigin
        let user: Countersign
        let proxy: RunningProxy

        init(
            _ control: [String: any Sendable] = [:], identities: [String] = ["laptop"],
            options: String = "answer=pkeyauth"
        ) throws {
            origin = try DeviceOrigin(control)
            user = try Countersign()
            for identity in identities { try user.importIdentity(identity) }
            try user.allow("\(origin.url) \(options)")
            proxy = try user.serve()
        }

        func get(_ path: String = "/common/oauth2?a=b", flags: [String] = []) throws -> HTTPClient.Response {
            try proxy.get(origin.url + path, flags: flags)
        }
    }

    private static let knowsES256: [String: any Sendable] = ["algorithms": "RS256,ES256"]

    @Test(arguments: [401, 400])
    func theDeviceProvesItselfWhateverTheStatus(status: Int) throws {
        let bench = try Bench(Self.knowsES256.merging(["status": status]) { $1 })
        let seen = try bench.get()
        #expect(seen.status == 200 && seen.text == "ES256 CN=laptop,O=Test\n", "\(seen.said)")
        let requests = bench.origin.requests
        #expect(requests.map(\.auth) == [nil, "PKeyAuth"] && requests.allSatisfy { $0.announced == ["1.0"] })
        #expect(requests.last?.parameters == ["AuthToken", "Context", "Version"])
        // Each request has a nonce of its own.
        #expect(try bench.get("/other").text == "ES256 CN=laptop,O=Test\n" && bench.origin.requests.count == 4)
        let logged = try bench.proxy.logged(site: bench.origin.url, atLeast: 2).filter { $0.method == "GET" }
        #expect(logged.map(\.challenge) == ["pkeyauth", "pkeyauth"])
        #expect(logged.allSatisfy { $0.credential == "laptop" })
    }

    @Test func aRequestsContentIsSentAgain() throws {
        let bench = try Bench(Self.knowsES256.merging(["status": 400]) { $1 })
        let seen = try bench.get("/token", flags: ["--data", "grant_type=refresh_token"])
        #expect(seen.status == 200 && seen.text.hasPrefix("ES256"), "\(seen.said)")
        #expect(bench.origin.requests.map(\.body) == [24, 24])
    }

    @Test func anRSAKeySignsWithRS256() throws {
        let bench = try Bench(identities: [])
        let done = try Command.run(
            Tool.path("openssl"),
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=rsa-device", "-days", "2", "-keyout",
                bench.user.folder.file("rsa.pem"), "-out", bench.user.folder.file("rsa.crt"), "-addext",
                "extendedKeyUsage=clientAuth", "-addext", "keyUsage=digitalSignature",
            ], in: bench.user.folder)
        #expect(done.status == 0, "\(done.said)")
        let both = try bench.user.folder.write(
            "rsa-both.pem", bench.user.folder.text("rsa.pem") + bench.user.folder.text("rsa.crt"))
        try bench.user.succeed("certificate", "import", both, "--name", "rsa")
        let seen = try poll { () -> HTTPClient.Response? in
            let seen = try bench.get()
            return seen.text.hasPrefix("RS256") ? seen : nil
        }
        #expect(seen?.text == "RS256 CN=rsa-device\n")
    }

    @Test func theServersIssuersChooseTheCertificate() throws {
        let authorities = "CN%3dclient-ca-b%2cO%3dTest"
        let bench = try Bench(
            Self.knowsES256.merging(["authorities": authorities]) { $1 }, identities: ["laptop", "badge"])
        #expect(try bench.get().text == "ES256 CN=badge,O=Test\n")
        // The line's own choice does not fit, so the device is unknown.
        let fixed = try Bench(
            Self.knowsES256.merging(["authorities": authorities]) { $1 }, identities: ["laptop", "badge"],
            options: "answer=pkeyauth identity=laptop")
        #expect(try fixed.get().text == "unknown device\n")
        #expect(fixed.origin.requests.last?.parameters == ["Context", "Version"])
    }

    /// A server that does not say which algorithms it knows gets no other than RS256.
    @Test func aKeyThatTheServerDoesNotKnowIsNotUsed() throws {
        let bench = try Bench()
        #expect(try bench.get().text == "unknown device\n")
    }

    @Test func aTokenForAnotherPlaceIsNotAccepted() throws {
        let bench = try Bench(Self.knowsES256.merging(["authority": "https://elsewhere.example/"]) { $1 })
        let seen = try bench.get()
        #expect(seen.status == 400 && seen.text.contains("forged") && seen.text.contains("aud"), "\(seen.said)")
    }

    @Test func withoutTheWordNothingIsSaidAboutTheDevice() throws {
        for (identities, options) in [(["laptop"], ""), (["laptop"], "answer=certificate"), ([], "answer=pkeyauth")] {
            let bench = try Bench(identities: identities, options: options)
            #expect(try bench.get().status == 403)
            #expect(bench.origin.requests.map(\.announced) == [[]])
        }
    }

    /// It could not follow the redirect that a server sends to one that says it.
    @Test func aBrowserDoesNotSayThatItHasADevice() throws {
        let bench = try Bench(Self.knowsES256)
        for mode in ["navigate", "cors"] {
            #expect(try bench.get(flags: ["-H", "Sec-Fetch-Mode: \(mode)"]).status == 403)
        }
        #expect(bench.origin.requests.map(\.announced) == [[], []])
    }

    /// Content that does not fit into memory is kept until the origin has challenged.
    @Test func theFirstRequestMayBeALargeUpload() throws {
        let bench = try Bench(Self.knowsES256)
        let body = try bench.user.folder.write("body", [UInt8](repeating: 0x61, count: 5_000_000))
        let seen = try bench.get("/token", flags: ["-X", "PUT", "--data-binary", "@\(body)"])
        #expect(seen.status == 200 && seen.text.hasPrefix("ES256"), "\(seen.said)")
        #expect(bench.origin.requests.last?.body == 5_000_000)
    }

    @Test func aClientThatSpeaksForItselfIsLeftAlone() throws {
        let bench = try Bench(Self.knowsES256)
        let field = "Authorization: Bearer own"
        #expect(try bench.get(flags: ["-H", field, "-H", "x-ms-PKeyAuth: 1.0"]).status == 400)
        #expect(try bench.get(flags: ["-H", "X-MS-PKeyAuth: 2.0"]).status == 403)
        #expect(bench.origin.requests.map(\.announced) == [["1.0"], ["2.0"]])
    }
}
