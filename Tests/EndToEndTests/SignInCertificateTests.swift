// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A site of nginx asks for the client certificate of a sign-in.
@Suite(.waiting) struct SignInCertificateTests {
    @Test func nginxGetsTheCertificateOfASignIn() throws {
        let pki = try TestPKI.shared
        let nginx = try Origins.shared.nginx
        let control = """
            {"auth": "bearer", "issuer": "client-ca-a", "cacerts": ["ca", "client-ca-a"],
             "clientCertificate": "optional", "clientAuthorities": ["client-ca-a"]}
            """
        let est = try ESTServer(#"{"auth": "bearer"}"#)
        try est.add(
            authority: "client-ca-a", certificate: pki.certificate("client-ca-a"), key: pki.key("client-ca-a"))
        try est.set(control)
        let provider = try SignInProvider(["token": ["canary-access-1"]])
        let user = try Countersign()
        let sites = [nginx.mutual12Port, nginx.mutual13Port].map { "https://signed-in.test.localhost:\($0)" }
        let service: [String: any Sendable] = [
            "server": est.address(), "sites": sites,
            "anchor": TextFile.text(est.certificate("ca")) + TextFile.text(pki.certificate("client-ca-a")),
        ]
        let profile = try user.folder.write("profile.json", try provider.profile(["name": "work", "est": service]))
        let browser = try user.folder.write(
            program: "browser", "#!/bin/sh\nexec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
        let proxy = try user.serve()
        let before = try proxy.get("\(sites[1])/who")
        #expect(!before.text.contains("CN=jdoe"), "\(before.said)")
        let done = try user.run(["enroll", profile, "--yes"], environment: ["BROWSER": browser])
        try #require(done.status == 0, "\(done.said)")
        for site in sites {
            let seen = poll { () -> String? in
                let text = try? proxy.get("\(site)/who").text
                return text?.contains("CN=jdoe@acme.example") == true ? text : nil
            }
            #expect(seen?.hasSuffix("CN=jdoe@acme.example\n") == true, "\(proxy.process.errorOutput)")
        }
        try user.succeed("unenroll", "work", "--no-sign-out")
        let isGone = poll { () -> Bool? in
            (try? proxy.get("\(sites[1])/who").text.contains("CN=jdoe")) == false ? true : nil
        }
        #expect(isGone == true)
    }
}
