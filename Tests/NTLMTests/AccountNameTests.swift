// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignNTLM

@Suite struct AccountNameTests {
    @Test(
        arguments: [
            ("jdoe", nil, "", "jdoe"),
            ("jdoe", "ACME", "ACME", "jdoe"),
            ("jdoe", "", "", "jdoe"),
            ("ACME\\jdoe", nil, "ACME", "jdoe"),
            ("ACME\\jdoe", "OTHER", "ACME", "jdoe"),
            ("\\jdoe", "OTHER", "", "jdoe"),
            ("ACME\\jd\\oe", nil, "ACME", "jd\\oe"),
            ("ACME\\jdoe@x", nil, "ACME", "jdoe@x"),
            ("jdoe@acme.example", "ACME", "", "jdoe@acme.example"),
            ("@", nil, "", "@"),
        ] as [(String, String?, String, String)])
    func enrolledNamesAreTakenApart(name: String, siteDomain: String?, domain: String, user: String) throws {
        #expect(try AccountName(enrolled: name, domain: siteDomain) == AccountName(domain: domain, user: user))
    }

    @Test(arguments: ["", "ACME\\", "\\"])
    func anonymousLogOnIsRefused(name: String) {
        #expect(throws: NTLMError(.unusableCredential, "")) { try AccountName(enrolled: name, domain: "ACME") }
    }
}
