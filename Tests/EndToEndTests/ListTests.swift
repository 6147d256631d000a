// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The allowed-sites list from the user's point of view.
@Suite(.waiting) struct ListTests {
    @Test(arguments: [
        ("https://a.test.localhost awnser=basic\n", "test.sites:1:26: unknown option \"awnser\""),
        ("# a comment\n\nhttps://a.test.localhost answer=basik\n", "test.sites:3:"), ("*\n", "test.sites:1:1: "),
        ("https://*.com\n", "test.sites:1:"), ("ftp://a.test.localhost\n", "test.sites:1:1: "),
        ("https://a.test.localhost:99999\n", "test.sites:1:"),
    ])
    func serveDoesNotStartWithAnInvalidLine(_ text: String, _ expected: String) throws {
        let user = try Countersign()
        try user.writeSites(text)
        let done = try user.run("serve", "--listen", "127.0.0.1:0")
        #expect(done.status == 1 && done.output.isEmpty, "\(done.said)")
        #expect(
            done.error.hasPrefix("countersign: error: ") && done.error.contains("AllowedSites/\(expected)"),
            "\(done.said)")
        #expect(expected.contains("awnser") ? done.error.contains("\ncountersign: hint: ") : true, "\(done.said)")
    }

    @Test func changedListAppliesWithoutARestart() throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.enroll()
        let proxy = try user.serve()
        let url = "https://new.test.localhost:\(origin.port)"
        let both = try user.folder.write(
            "both.pem", TextFile.bytes(proxy.anchor) + TextFile.bytes(try TestPKI.shared.originAnchor))
        func status() throws -> Int {
            try proxy.send(.curl, HTTPClient.Request(url: "\(url)/echo"), anchors: both).status
        }
        #expect(try status() == 401)
        try user.succeed("sites", "add", url)
        #expect(try poll { try status() == 200 ? true : nil } == true)
        try user.succeed("sites", "remove", url)
        #expect(try poll { try status() == 401 ? true : nil } == true)
    }

    @Test func reloadOfAnInvalidListKeepsTheOldOne() throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.enroll()
        let url = "https://kept.test.localhost:\(origin.port)"
        try user.writeSites("\(url) answer=basic\n")
        let proxy = try user.serve()
        #expect(try proxy.get("\(url)/echo").status == 200)
        try user.writeSites("\(url) awnser=basic\n")
        proxy.process.send(SIGHUP)
        let isLogged = poll {
            proxy.process.errorOutput.contains("unknown option \"awnser\"") ? true : nil
        }
        #expect(isLogged == true, "\(proxy.process.errorOutput)")
        #expect(try proxy.get("\(url)/echo").status == 200)
        try user.writeSites("https://else.test.localhost\n")
        proxy.process.send(SIGHUP)
        let gone = try poll { try proxy.get("\(url)/echo").status == 200 ? nil : true }
        #expect(gone == true)
    }

    @Test func sitesCheckAndExplainAgreeWithTheList() throws {
        let user = try Countersign()
        try user.enroll()
        try user.allow(
            "https://*.corp.test.localhost answer=ntlm domain=ACME",
            "http://print.test.localhost answer=ntlm plaintext=yes")
        #expect(try user.run("sites", "check", "https://a.corp.test.localhost/x").status == 0)
        #expect(try user.run("sites", "check", "https://corp.test.localhost/").status == 1)
        #expect(try user.run("sites", "check", "http://a.corp.test.localhost/").status == 1)
        let explanation = try user.succeed("explain", "https://a.corp.test.localhost/", "--json")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(explanation.utf8)) as? [String: Any])
        #expect(object["listed"] as? Bool == true && object["handling"] as? String == "intercept", "\(explanation)")
        let schemes = try #require(object["schemes"] as? [[String: Any]])
        let answered = schemes.filter { $0["answered"] as? Bool == true }.compactMap { $0["scheme"] as? String }
        #expect(answered == ["ntlm"], "\(explanation)")
        let unlisted = try user.succeed("explain", "https://else.test.localhost/", "--json")
        #expect(unlisted.contains("\"tunnel\""), "\(unlisted)")
    }

    @Test func mostSpecificLineWins() throws {
        let origins = try Origins.shared
        let user = try Countersign()
        try user.enroll()
        let port = origins.apache.httpsPort
        try user.allow(
            "https://*.deep.test.localhost:\(port) answer=basic", "https://not.deep.test.localhost:\(port) answer=ntlm")
        let proxy = try user.serve()
        let (a, b) = ("a.deep.test.localhost:\(port)", "not.deep.test.localhost:\(port)")
        #expect(
            try proxy.send(.curl, HTTPClient.Request(url: "https://\(a)/basic/index", isInsecure: true)).status == 401)
        #expect(
            try proxy.send(.curl, HTTPClient.Request(url: "https://\(b)/basic/index", isInsecure: true)).status == 401)
        #expect(try proxy.logged(site: "https://\(a)").first?.decision == "intercept")
    }

    @Test func emptyListAnswersNothing() throws {
        let origins = try Origins.shared
        let user = try Countersign()
        try user.enroll()
        let proxy = try user.serve()
        let url = "http://empty.test.localhost:\(origins.apache.httpPort)/basic/index?empty"
        #expect(try proxy.get(url).status == 401)
        #expect(origins.logged(query: "empty").allSatisfy { $0.auth == "-" })
    }

    @Test func tenThousandSitesHaveCertificatesThatClientsAccept() throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.enroll()
        let sites = (0..<10_000).map { "https://many\($0).test.localhost:\(origin.port)" }
        try user.writeSites(sites.map { $0 + "\n" }.joined())
        let proxy = try user.serve()
        for site in [sites[0], sites[5_000], sites[9_999]] {
            let response = try proxy.get("\(site)/echo")
            #expect(response.status == 200, "\(site): \(response)")
        }
        let unlisted = "https://many10000.test.localhost:\(origin.port)"
        #expect(try proxy.send(.curl, .init(url: "\(unlisted)/echo", isInsecure: true)).status == 401)
        #expect(try proxy.logged(site: unlisted).first?.decision == "tunnel")
    }
}
