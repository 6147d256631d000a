// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignDeviceManagement

@Suite struct PageResponsesTests {
    private func response(_ name: String, _ status: Int = 200, to location: String? = nil) throws -> PageResponse {
        let fields = [(name: "X-Name", value: name)] + (location.map { [(name: "Location", value: $0)] } ?? [])
        return PageResponse(
            origin: try Origin(url: "https://mdm.example"), status: status, headers: ResponseHeaders(fields))
    }

    private func cause(of url: String, _ responses: [PageResponse]) -> String? {
        var list = PageResponses()
        for response in responses { list.add(response) }
        return list.cause(of: url)?.headers["X-Name"]
    }

    @Test func aRedirectIsTheCauseThoughAnotherPageHasComeSince() throws {
        let responses = try [
            response("before"), response("redirect", 302, to: "MSAUTH://installProfile?a=b#top"),
            response("elsewhere", 302, to: "https://mdm.example/"), response("later"),
        ]
        #expect(cause(of: "msauth://installProfile?a=b", responses) == "redirect")
        #expect(cause(of: "msauth://installProfile", responses) == "later")
    }

    @Test(arguments: [302, 303, 307, 308, 301, 204, 205])
    func aResponseWithoutAPageOpensNothing(status: Int) throws {
        let responses = try [
            response("page"), response("other", status, to: status < 300 ? nil : "https://mdm.example/next"),
        ]
        #expect(cause(of: "msauth://installProfile", responses) == "page")
    }

    @Test func aPageWithALocationIsNoRedirect() throws {
        let responses = try [response("created", 201, to: "msauth://a"), response("page", 403)]
        #expect(cause(of: "msauth://a", responses) == "page")
    }

    @Test func aRedirectIsTheCauseOfOneURL() throws {
        var list = PageResponses()
        list.add(try response("page"))
        list.add(try response("redirect", 302, to: "msauth://a b"))
        #expect(list.cause(of: "msauth://a%20b")?.headers["X-Name"] == "redirect")
        #expect(list.cause(of: "msauth://a%20b")?.headers["X-Name"] == "page")
    }

    @Test func withoutResponsesThereIsNone() throws {
        #expect(cause(of: "msauth://a", []) == nil)
        #expect(cause(of: "msauth://a", [try response("other", 302, to: "msauth://b")]) == nil)
    }

    @Test func onlyTheLastResponsesAreRemembered() throws {
        let responses = try (0...PageResponses.maximumCount).map { try response("\($0)", 302, to: "msauth://\($0)") }
        #expect(cause(of: "msauth://0", responses) == nil)
        #expect(cause(of: "msauth://1", responses) == "1")
    }
}
