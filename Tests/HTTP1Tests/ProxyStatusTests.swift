// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignHTTP1

@Suite struct ProxyStatusTests {
    @Test(arguments: [
        ("plain", #""plain""#), (#"a "b" \c"#, #""a \"b\" \\c""#), ("line\r\nSet-Cookie: x", #""line??Set-Cookie: x""#),
        ("münchen\u{0}\u{7F}", #""m?nchen??""#), ("", #""""#),
    ]) func detailsAreAStructuredFieldString(_ text: String, _ quoted: String) {
        #expect(ProxyStatus.value(error: nil, details: text) == "countersign; details=\(quoted)")
    }

    @Test func theErrorPrecedesTheDetails() {
        #expect(ProxyStatus.value(error: "dns_error", details: "x") == #"countersign; error=dns_error; details="x""#)
        #expect(ProxyStatus.value(error: nil, details: nil) == "countersign")
    }

    @Test func aParameterIsReadAsItWasWritten() {
        let text = #"the host "a\b"; error=x is unknown"#
        let value = ProxyStatus.value(error: "dns_error", details: text)
        #expect(ProxyStatus.parameter("error", of: value) == "dns_error")
        #expect(ProxyStatus.parameter("details", of: value) == text)
        #expect(ProxyStatus.parameter("status", of: value) == nil)
    }
}
