// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import CountersignSitePolicy
import Foundation
import Testing

@testable import CountersignCLI

@Suite struct StepUpOptionsTests {
    private static let signIn = """
        {"name": "work", "issuer": "https://login.example", "account": "jdoe", "subject": "1", "scope": "openid",
        "source": "work.json", "sites": [], "signedIn": 0, "expires": 0, "isRenewable": true, "ended": "",
        "failures": 0, "lastFailure": 0, "identifier": "a"}
        """

    private static func demand(at lines: String...) throws -> Bool {
        let list = try SiteList(files: [("t.sites", lines.joined(separator: "\n"))])
        let signIn = try JSONDecoder().decode(ListedSignIn.self, from: Data(signIn.utf8))
        let options = try StepUpOptions.parse(["--site", "https://api.example", "--acr-values", "high"])
        return try options.demand(on: signIn, name: nil, scopes: [], list: { list }) != nil
    }

    @Test func anyLineOfTheSiteMayGetTheToken() throws {
        #expect(try Self.demand(at: "api.example credential=work"))
        #expect(try Self.demand(at: "api.example methods=GET", "api.example methods=POST credential=work"))
        #expect(try Self.demand(at: "api.example for=token:ci", "api.example credential=work"))
    }

    @Test func aSiteWithoutTheTokenIsRefused() throws {
        #expect(throws: CountersignError.self) {
            try Self.demand(at: "api.example methods=GET", "api.example methods=POST", "b.example credential=work")
        }
    }
}
