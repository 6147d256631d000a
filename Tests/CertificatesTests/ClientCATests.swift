// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignDemo
import Testing

struct ClientCATests {
    @Test func anIdentityIsForTheAuthoritysServersAndForItsLifetime() throws {
        let now = TestPKI.now
        let authority = try ClientCA(commonName: "Demo clients", at: now)
        let identity = try authority.issue("laptop", commonName: "Ada", lifetime: 3_600, at: now)
        let issuers = [authority.certificate.subjectDER]
        #expect(
            identity.fits(acceptableIssuers: issuers, at: now)
                && identity.fits(acceptableIssuers: issuers, at: now + 3_600))
        #expect(identity.obstacle(acceptableIssuers: issuers, at: now + 3_601) == .expired(notAfter: now + 3_600))
        #expect(try !identity.fits(acceptableIssuers: [TestPKI.leaf("client-a-root").subjectDER], at: now))
        let folder = try TemporaryFolder()
        try folder.write("root.pem", authority.certificate.pem)
        try folder.write("leaf.pem", identity.leaf.pem)
        try openssl(
            "verify", "-x509_strict", "-purpose", "sslclient", "-attime", "\(now)", "-CAfile", folder.path("root.pem"),
            folder.path("leaf.pem"))
    }
}
