// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Every client with every kind of challenge; Rows.swift has the table.
@Suite(.waiting) struct ClientMatrixTests {
    @Test(arguments: HTTPClient.allCases, Row.all)
    func clientSeesOnlyTheFinalResponse(_ client: HTTPClient, _ row: Row) throws {
        let setting = try Setting.shared
        let query = "\(client)-\(row.name.filter { $0.isLetter || $0.isNumber })"
        let anchors = try anchors(row, setting)
        let seen = try setting.proxy.send(
            client, HTTPClient.Request(url: row.url(setting.origins, query: query)), anchors: anchors)
        switch row.outcome {
        case .answered(let body), .untouched(let body):
            #expect(seen.status == 200 && seen.text == body, "\(seen.said)")
            #expect(seen.values("WWW-Authenticate").isEmpty && seen.exit == 0, "\(seen.said)")
        case .handedBack:
            #expect(seen.status == 401, "\(seen.said)")
            #expect(seen.values("WWW-Authenticate").count == 1, "\(seen.said)")
        }
        let logged = poll {
            let logged = setting.origins.logged(query: query)
            return logged.last?.status == seen.status ? logged : nil
        }
        let last = try #require(logged?.last, "the origin saw no such request")
        check(row, logged ?? [], last)
    }

    /// Trusting only one issuer shows whose certificate the client received.
    private func anchors(_ row: Row, _ setting: Setting) throws -> String {
        switch (row.outcome, row.options) {
        case (.untouched, _), (_, nil): try TestPKI.shared.originAnchor
        case (.answered, _), (.handedBack, _): setting.proxy.anchor
        }
    }

    private func check(_ row: Row, _ logged: [LoggedRequest], _ last: LoggedRequest) {
        switch row.outcome {
        case .answered where row.path == "/basic/index":
            #expect(last.auth == "Basic" && last.user == Countersign.user)
        case .answered where row.path == "/digest/index":
            #expect(last.auth == "Digest" && last.user == Countersign.user)
        case .answered where row.path == "/file":
            #expect(last.user == "ACME\\jdoe" && last.auth == "authenticate")
        case .answered where row.path == "/certificate/index":
            #expect(last.client == "laptop")
        case .answered, .untouched:
            #expect(logged.count == 1)
        case .handedBack:
            #expect(logged.allSatisfy { $0.auth == "-" && $0.user == "-" }, "\(logged)")
        }
        #expect(logged.allSatisfy { $0.fields?.contains("proxy-authorization") != true })
    }

    @Test(arguments: HTTPClient.allCases)
    func unansweredChallengeIsPassedOnByteForByte(_ client: HTTPClient) throws {
        let setting = try Setting.shared
        let port = setting.origins.apache.httpsPort
        let path = "/digest/index?handed-\(client)"
        let listed = try setting.proxy.send(
            client, HTTPClient.Request(url: "https://undigested.test.localhost:\(port)\(path)"))
        #expect(listed.status == 401, "\(listed.said)")
        // wget discards the body of a 401.
        #expect(client == .wget || listed.text.contains("<title>401 Unauthorized</title>"), "\(listed.said)")
        #expect(listed.proxyStatus.hasPrefix("countersign; details=\"not answered: "), "\(listed.said)")
        let field = try #require(listed.values("WWW-Authenticate").first)
        #expect(field.wholeMatch(of: /Digest realm="Apache", nonce="[^"]+", algorithm=MD5, qop="auth"/) != nil)
    }

    @Test(arguments: Row.all.prefix(12))
    func headIsAnsweredAndTheConnectionIsReused(_ row: Row) throws {
        let setting = try Setting.shared
        let url = row.url(setting.origins, query: "head=[1-2]")
        let seen = try setting.proxy.send(
            .curl, HTTPClient.Request(method: "HEAD", url: url, flags: ["-w", "%{http_code} %{num_connects} "]))
        #expect(seen.exit == 0 && seen.said.contains("200 1 200 0 "), "\(seen.said)")
        let logged = setting.origins.logged(query: "head=2") { $0.status == 200 }.filter { $0.status == 200 }
        #expect(!logged.isEmpty && logged.allSatisfy { $0.method == "HEAD" })
    }
}
