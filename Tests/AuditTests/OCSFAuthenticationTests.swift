// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Testing

@testable import CountersignAudit

@Suite struct OCSFAuthenticationTests {
    private func event(_ use: CredentialUse) throws -> JSONObject? {
        var chain = AuditChain()
        return OCSFAuthentication.event(for: try AuditRecord(chain.use(use).dropLast()))
    }

    @Test func aUseIsALogon() throws {
        var chain = AuditChain()
        let record = try AuditRecord(chain.use(AuditFixture.use(2)).dropLast())
        #expect(
            OCSFAuthentication.event(for: record)?.text == """
                {"category_uid":3,"class_uid":3002,"activity_id":1,"type_uid":300201,"time":1767225602250,\
                "severity_id":1,"metadata":{"version":"1.4.0","product":{"name":"Countersign",\
                "vendor_name":"Countersign"},"uid":"\(record.hash)","sequence":1},"status_id":1,"status":"Success",\
                "auth_protocol_id":1,"auth_protocol":"NTLM","user":{"name":"default"},\
                "dst_endpoint":{"hostname":"git.corp.example","port":443},\
                "service":{"name":"https://git.corp.example:443"},\
                "actor":{"process":{"pid":4002,"name":"git","path":"/usr/bin/git"},"user":{"uid":"1000"}},\
                "http_request":{"http_method":"GET"},"http_response":{"code":200},\
                "unmapped":{"scheme":"ntlm","result":"accepted","generation":3,"cgroup":"/user.slice"}}
                """)
    }

    @Test(arguments: [
        (CredentialUse.Result.accepted, "\"status_id\":1,\"status\":\"Success\"", 1),
        (.rejected, "\"status_id\":2,\"status\":\"Failure\"", 2), (.sent, "\"status_id\":99,\"status\":\"sent\"", 1),
        (.unanswered, "\"status_id\":99,\"status\":\"unanswered\"", 1),
        (.unsent, "\"status_id\":99,\"status\":\"unsent\"", 1),
    ])
    func eachResultHasAStatus(result: CredentialUse.Result, status: String, severity: Int) throws {
        var use = AuditFixture.use(1)
        use.result = result
        let text = try #require(try event(use)?.text)
        #expect(text.contains(status) && text.contains("\"severity_id\":\(severity),"))
    }

    @Test(arguments: [
        ("basic", "11,\"auth_protocol\":\"Basic Authentication\""), ("digest", "3,\"auth_protocol\":\"Digest\""),
        ("bearer", "6,\"auth_protocol\":\"OAUTH 2.0\""), ("negotiate", "99,\"auth_protocol\":\"negotiate\""),
    ])
    func eachSchemeHasAProtocol(scheme: String, text: String) throws {
        var use = AuditFixture.use(1)
        use.scheme = scheme
        #expect(try event(use)?.text.contains("\"auth_protocol_id\":\(text)") == true)
    }

    @Test func whatIsUnknownIsLeftOut() throws {
        let use = CredentialUse(
            time: AuditFixture.time(0), site: "https://[::1]:8443", scheme: "basic", credential: "a", method: "GET",
            status: 0, result: .unanswered)
        let text = try #require(try event(use)?.text)
        #expect(text.contains("\"dst_endpoint\":{\"hostname\":\"[::1]\",\"port\":8443}"))
        for member in ["actor", "http_response", "generation", "cgroup"] {
            #expect(!text.contains(member), "\(member)")
        }
        #expect(throws: Never.self) { try JSONParser.parse(Array(text.utf8)) }
    }

    @Test func otherRecordsAndDryRunsAreNoLogons() throws {
        var use = AuditFixture.use(1)
        use.isDryRun = true
        #expect(try event(use) == nil)
        var chain = AuditChain()
        let begin = try AuditRecord(chain.begin(at: AuditFixture.time(0)).dropLast())
        #expect(OCSFAuthentication.event(for: begin) == nil)
    }
}
