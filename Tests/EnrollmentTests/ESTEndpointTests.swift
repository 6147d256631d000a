// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignEnrollment

@Suite struct ESTEndpointTests {
    @Test(arguments: [
        ("https://est.example", "https://est.example/.well-known/est/cacerts"),
        ("https://EST.Example./", "https://est.example/.well-known/est/cacerts"),
        ("https://est.example:443/", "https://est.example/.well-known/est/cacerts"),
        ("https://est.example:8443/people", "https://est.example:8443/.well-known/est/people/cacerts"),
        ("https://[::1]:8443/people/", "https://[::1]:8443/.well-known/est/people/cacerts"),
        ("https://est.example/.well-known/est", "https://est.example/.well-known/est/cacerts"),
        ("https://est.example/.well-known/est/people", "https://est.example/.well-known/est/people/cacerts"),
        ("https://bücher.example", "https://xn--bcher-kva.example/.well-known/est/cacerts"),
    ])
    func anAddressNamesOnePlace(text: String, url: String) throws {
        #expect(try ESTEndpoint(parsing: text).url(for: .cacerts) == url)
    }

    @Test(arguments: [
        "est.example", "http://est.example", "ftp://est.example", "https://", "https://jdoe@est.example",
        "https://jdoe:secret@est.example/", "https://est.example/a/b", "https://est.example/a?b",
        "https://est.example/a#b", "https://est.example/#", "https://est.example/?", "https://est.example/cacerts",
        "https://est.example/simpleenroll", "https://est.example/..", "https://est.example/.", "https://est.example//",
        "https://est.example/a%2Fb", "https://est.example/a b", "https://est.example:0", "https://est.example:65536",
        "https://127.1/", "https://est.example/.well-known/est/a/b", "https://est.example/\u{7F}", "",
    ])
    func anythingElseIsRefused(text: String) {
        #expect(throws: EnrollmentError(.configuration, "")) { try ESTEndpoint(parsing: text) }
    }

    @Test func everyOperationHasItsPath() throws {
        let endpoint = try ESTEndpoint(parsing: "https://est.example/people")
        #expect(
            ESTEndpoint.Operation.allCases.map(endpoint.url) == [
                "https://est.example/.well-known/est/people/cacerts",
                "https://est.example/.well-known/est/people/csrattrs",
                "https://est.example/.well-known/est/people/simpleenroll",
                "https://est.example/.well-known/est/people/simplereenroll",
            ])
        #expect(endpoint.description == "https://est.example/people")
        #expect(try ESTEndpoint(parsing: endpoint.description) == endpoint)
    }
}
