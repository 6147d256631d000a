// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignRouting

/// Which of the responses that libcurl receives are the relay's own.
@Suite struct RelayHeadTests {
    private static let own = #"Proxy-Status: countersign; error=destination_unavailable; details="nobody listens""#
    private static let foreign = "Proxy-Status: cdn; error=destination_unavailable"

    private func head(_ exchanges: [(request: String, response: [String])]) -> RelayHead {
        let head = RelayHead()
        for (request, response) in exchanges {
            Array("\(request) HTTP/1.1\r\n\r\n".utf8).withUnsafeBytes { head.sent($0) }
            for line in response { head.received(line[...]) }
        }
        return head
    }

    @Test(arguments: ["CONNECT www.corp.invalid:443", "GET http://www.corp.invalid/"])
    func theRelaysOwnResponseIsARefusal(request: String) {
        let refusal = head([(request, ["HTTP/1.1 502 Bad Gateway", Self.own])]).refusal
        #expect(refusal?.status == 502 && refusal?.detail == "nobody listens" && refusal?.isUnconnected == true)
    }

    /// An origin could have a request sent again otherwise, past the parents.
    @Test func whatComesThroughATunnelIsTheOrigins() {
        let opened = ("CONNECT www.corp.invalid:443", ["HTTP/1.1 200 OK"])
        let failed = ["HTTP/1.1 502 Bad Gateway", Self.own]
        #expect(head([opened, ("POST /simpleenroll", failed)]).refusal == nil)
        // libcurl has kept the tunnel of an earlier request.
        #expect(head([("POST /simpleenroll", failed)]).refusal == nil)
    }

    @Test func aForwardedResponseIsTheOriginsUnlessItIsAChallenge() {
        func refusal(_ status: Int) -> RelayRefusal? {
            head([("GET http://www.corp.invalid/", ["HTTP/1.1 \(status) X", "via: 1.1 relay", Self.foreign])]).refusal
        }
        #expect(refusal(502) == nil && refusal(407)?.status == 407)
    }
}
