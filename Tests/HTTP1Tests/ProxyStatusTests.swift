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

    // MARK: Members of others

    @Test(arguments: [
        ("countersign", "upstream-countersign"),
        (#"countersign; details="answered as jdoe""#, #"upstream-countersign; details="answered as jdoe""#),
        ("a; error=dns_error, countersign;error=dns_error", "a; error=dns_error, upstream-countersign;error=dns_error"),
        (#"x;y="a, countersign; b", COUNTERSIGN , b"#, #"x;y="a, countersign; b", upstream-COUNTERSIGN , b"#),
        (#""countersign"; error=x"#, #""upstream-countersign"; error=x"#),
        (#"x;details="a\\", countersign"#, #"x;details="a\\", upstream-countersign"#),
        // Two readers could find different members.
        (#"x; details="a, countersign"#, ""), (#"x", countersign; details=""#, ""),
        (#"x", countersign; details="" "#, ""), (#"x; details="a\", countersign"#, ""),
        (#"x; y="a"b, countersign"#, ""), (#"x "a, countersign"#, ""),
    ]) func anotherCannotSpeakInOurName(_ value: String, _ renamed: String) {
        #expect(ProxyStatus.renamed(value) == renamed)
    }

    @Test(arguments: [
        "", "squid; error=dns_error", "countersign-2; error=x", "my.countersign", "countersigned",
        #"x; details="countersign, y""#, #""countersign.example"; received-status=200"#,
        #"x; a="b" ; c="\"" , y"#,
    ]) func whatIsNotOursIsPassedOn(_ value: String) {
        #expect(ProxyStatus.renamed(value) == nil)
    }
}
