// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

@Suite(.waiting) struct WeakAnchorTests {
    @Test func aWeakAnchorIsReportedWhenItIsLoaded() throws {
        let sandbox = try Sandbox()
        let made = try sandbox.sh(
            """
            mkdir -p home/Certs/anchors && printf '[req]\\ndistinguished_name=name\\n[name]\\n' > settings && \
            openssl req -x509 -config settings -newkey rsa:1024 -nodes -subj /CN=old -days 10 -sha1 -keyout key \
            -addext basicConstraints=critical,CA:TRUE -out home/Certs/anchors/old.pem
            """)
        try #require(made.status == 0, "\(made.said)")
        let result = try sandbox.sh("countersign exec -- true")
        #expect(result.status == 0, "\(result.said)")
        #expect(
            result.error.contains(
                """
                countersign: warning: trust anchor "CN=old" in Certs/anchors/old.pem is weak: its key is RSA 1024, its \
                signature is sha1WithRSAEncryption, it has no key usage
                """), "\(result.said)")
    }
}
