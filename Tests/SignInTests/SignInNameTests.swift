// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import Testing

@testable import CountersignSignIn

@Suite struct SignInNameTests {
    @Test(arguments: [
        ("https://login.corp.example", "login.corp.example"),
        ("https://Login.Corp.example:8443/a", "login.corp.example"),
        ("https://[2001:db8::1]/", "2001-db8--1"), ("https://[::1]/", "1"), ("https://192.0.2.1", "192.0.2.1"),
        ("https://a_b.corp.example", "a-b.corp.example"),
        (
            "https://\(String(repeating: "a", count: 40)).\(String(repeating: "b", count: 51)).corp.example",
            "\(String(repeating: "b", count: 51)).corp.example"
        ),
    ])
    func theIssuersHostIsAName(issuer: String, name: String) throws {
        let implied = SignInName.implied(by: try Issuer(issuer))
        #expect(implied == name && SignInName.fault(of: implied) == nil)
    }

    @Test(arguments: [
        "", ".x", "a b", "enrollment", "https_git.corp.example_443", "http_0123", "https_",
        String(repeating: "a", count: 65),
    ])
    func aNameThatSitesUseWithoutNamingItIsRefused(name: String) {
        #expect(SignInName.fault(of: name) != nil)
    }

    @Test(arguments: ["work", "https", "httpsx_a", "enrollment2", "A.b_c-d"])
    func otherNamesArePermitted(name: String) {
        #expect(SignInName.fault(of: name) == nil)
    }
}
