// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

struct TunnelRequestTests {
    @Test func thePasswordIsAddedAndOtherFieldsAreNot() throws {
        let head = "CONNECT login.test:443 HTTP/1.1\r\nHost: x\r\nUser-Agent: y\r\nProxy-Authorization: z\r\n\r\n"
        let request = try #require(TunnelRequest(head: Array(head.utf8)))
        // RFC 7617 §2.
        let proxy = try ProxyAddress("http://Aladdin:open-sesame@127.0.0.1:1")
        let expected =
            "CONNECT login.test:443 HTTP/1.1\r\nHost: login.test:443\r\n"
            + "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuLXNlc2FtZQ==\r\n\r\n"
        #expect(String(decoding: request.head(for: proxy), as: UTF8.self) == expected)
    }

    @Test(arguments: [
        "GET http://login.test/ HTTP/1.1\r\n\r\n", "CONNECT login.test HTTP/1.1\r\n\r\n",
        "CONNECT login.test: HTTP/1.1\r\n\r\n", "CONNECT login.test:443 HTTP/1.0\r\n\r\n",
        "CONNECT login.test:443  HTTP/1.1\r\n\r\n", "CONNECT u@login.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT login.test:443/x HTTP/1.1\r\n\r\n", "CONNECT login.test:443 HTTP/1.1\r\n", "\r\n\r\n",
        "CONNECT login.test:99999 HTTP/1.1\r\n\r\n",
    ])
    func otherRequestsAreNotTunnels(head: String) {
        #expect(TunnelRequest(head: Array(head.utf8)) == nil)
    }

    @Test func anAddressIsATunnel() {
        #expect(TunnelRequest(head: Array("CONNECT [::1]:8443 HTTP/1.1\r\n\r\n".utf8))?.authority == "[::1]:8443")
    }
}
