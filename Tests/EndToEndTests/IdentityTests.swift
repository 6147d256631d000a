// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Which client certificate is sent to which site, and the result without one.
@Suite(.waiting) struct IdentityTests {
    @Test func withoutAnIdentityTheOriginsErrorPageIsPassedOn() throws {
        let nginx = try Origins.shared.nginx
        let user = try Countersign()
        let url = "https://none.test.localhost:\(nginx.mutual13Port)"
        try user.allow(url)
        let seen = try user.serve().get("\(url)/who")
        #expect(seen.status == 400 && seen.text.contains("No required SSL certificate was sent"), "\(seen.said)")
        let optional = "https://none.test.localhost:\(nginx.optionalPort)"
        try user.allow(optional)
        #expect(try user.serve().get("\(optional)/who").text == "NONE \n")
    }

    @Test func identityFromAnotherIssuerIsNotSent() throws {
        let nginx = try Origins.shared.nginx
        let user = try Countersign()
        try user.importIdentity("badge")
        let url = "https://other.test.localhost:\(nginx.optionalPort)"
        try user.allow(url)
        let seen = try user.serve().get("\(url)/who")
        #expect(seen.text == "NONE \n", "\(seen.said)")
    }

    @Test func siteWithoutAnswerCertificateGetsNone() throws {
        let nginx = try Origins.shared.nginx
        let user = try Countersign()
        try user.importIdentity("laptop")
        let url = "https://nocert.test.localhost:\(nginx.optionalPort)"
        try user.allow("\(url) answer=basic")
        let seen = try user.serve().get("\(url)/who")
        #expect(seen.text == "NONE \n", "\(seen.said)")
    }

    @Test func removedIdentityIsNoLongerSent() throws {
        let nginx = try Origins.shared.nginx
        let user = try Countersign()
        try user.importIdentity("laptop")
        let url = "https://gone.test.localhost:\(nginx.optionalPort)"
        try user.allow(url)
        let proxy = try user.serve()
        #expect(try proxy.get("\(url)/who").text == "SUCCESS CN=laptop,O=Test\n")
        try user.succeed("certificate", "remove", "laptop")
        #expect(try poll { try proxy.get("\(url)/who").text == "NONE \n" ? true : nil } == true)
    }

    @Test func postHandshakeRequestWithoutAnIdentityIsRefusedByTheOrigin() throws {
        let apache = try Origins.shared.apache
        let user = try Countersign()
        for port in [apache.postHandshakePort, apache.renegotiatingPort] {
            try user.allow("https://none.test.localhost:\(port)")
        }
        let proxy = try user.serve()
        for port in [apache.postHandshakePort, apache.renegotiatingPort] {
            let url = "https://none.test.localhost:\(port)"
            #expect(try proxy.get("\(url)/open").status == 200)
            let seen = try proxy.get("\(url)/certificate/index")
            #expect(seen.status == 403 || seen.status == 502, "\(seen.said)")
            #expect(try proxy.get("\(url)/open").status == 200)
        }
    }

    @Test(arguments: [10, 100_000])
    func bodyReachesAPathThatRequestsTheCertificateLater(_ count: Int) throws {
        let apache = try Origins.shared.apache
        let user = try Countersign()
        try user.importIdentity("laptop")
        let body = try user.folder.write("body", String(repeating: "b", count: count))
        let ports = [apache.postHandshakePort, apache.renegotiatingPort]
        for port in ports { try user.allow("https://body.test.localhost:\(port)") }
        let proxy = try user.serve()
        for port in ports {
            let url = "https://body.test.localhost:\(port)/certificate/index"
            let request = HTTPClient.Request(method: "POST", url: url, body: body, flags: [])
            let seen = try proxy.send(.curl, request)
            #expect(seen.status == 200 && seen.values("X-Client-Certificate") == ["laptop"], "\(seen.said)")
        }
    }
}
