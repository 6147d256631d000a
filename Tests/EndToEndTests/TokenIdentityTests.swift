// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// A key in a SoftHSM token, used by `serve` with nginx.
@Suite(.waiting) struct TokenIdentityTests {
    @Test func tokenKeyAnswersNginx() throws {
        let nginx = try Origins.shared.nginx
        let pki = try TestPKI.shared
        let token = try SoftToken()
        try token.take("laptop", id: "01", key: pki.key("laptop"), certificate: pki.certificate("laptop"))
        let user = try Countersign()
        let imported = try user.run(
            "certificate", "import", SoftToken.uri("laptop"), "--name", "laptop", "--password-stdin",
            input: SoftToken.pin, environment: token.environment)
        try #require(imported.status == 0, "\(imported.said)")
        let ports = [nginx.mutual12Port, nginx.mutual13Port]
        for port in ports { try user.allow("https://token.test.localhost:\(port)") }
        let proxy = try user.serve(environment: token.environment)
        for (port, version) in zip(ports, ["TLSv1.2", "TLSv1.3"]) {
            let seen = try proxy.get("https://token.test.localhost:\(port)/who")
            #expect(seen.text == "\(version) CN=laptop,O=Test\n", "\(seen.said)")
        }
        #expect(!proxy.process.errorOutput.contains(SoftToken.pin) && !proxy.process.output.contains(SoftToken.pin))
    }

    @Test func missingTokenIsLoggedAndServeContinues() throws {
        let nginx = try Origins.shared.nginx
        let pki = try TestPKI.shared
        let token = try SoftToken()
        try token.take("laptop", id: "01", key: pki.key("laptop"), certificate: pki.certificate("laptop"))
        let user = try Countersign()
        let imported = try user.run(
            "certificate", "import", SoftToken.uri("laptop"), "--name", "laptop", "--password-stdin",
            input: SoftToken.pin, environment: token.environment)
        try #require(imported.status == 0, "\(imported.said)")
        let url = "https://absent.test.localhost:\(nginx.optionalPort)"
        try user.allow(url)
        let proxy = try user.serve(environment: ["SOFTHSM2_CONF": "/dev/null"])
        #expect(try proxy.get("\(url)/who").text == "NONE \n")
        #expect(proxy.process.errorOutput.contains("laptop"), "\(proxy.process.errorOutput)")
    }
}
