// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

struct ProxyFailureTests {
    @Test(arguments: [
        ("countersign; error=dns_error; details=\"a: no such host\"", true, "a: no such host"),
        ("countersign; details=\"not answered: \\\"a\\\", b; c\\\\\"", false, "not answered: \"a\", b; c\\"),
        ("other; error=x; details=\"countersign; error=x\", countersign; error=loop", true, ""),
        ("countersign", false, ""),
    ])
    func theProxysMemberIsRead(value: String, isError: Bool, details: String) throws {
        let failure = try #require(ProxyFailure(value))
        #expect(failure.isError == isError && failure.details == details)
    }

    @Test(arguments: [
        "", "upstream-countersign; error=x", "countersigns; error=x", "other; details=\"x, countersign; error=x\"",
    ])
    func othersDoNotSpeakForTheProxy(value: String) {
        #expect(ProxyFailure(value) == nil)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 Connection established\r\n\r\n", true, "the proxy answers with the status 200"),
        (
            "HTTP/1.1 502 Bad Gateway\r\nproxy-status: countersign; error=dns_error; details=\"a: no such host\"\r\n\r\n",
            false, "a: no such host"
        ),
        (
            "HTTP/1.1 407 Proxy\r\nProxy-Status: other; details=\"x\"\r\n\r\n", false,
            "the proxy answers with the status 407"
        ),
    ])
    func theResponseToATunnelHasAReason(head: String, isOpen: Bool, reason: String) throws {
        let response = try #require(TunnelResponse(head: Array(head.utf8)))
        #expect(response.isOpen == isOpen && response.reason == reason)
    }

    @Test(arguments: ["", "\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n", "SSH-2.0-x 200\r\n\r\n"])
    func otherBytesAreNoResponse(head: String) {
        #expect(TunnelResponse(head: Array(head.utf8)) == nil)
    }
}
