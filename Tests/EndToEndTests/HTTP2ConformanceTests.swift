// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// The checks of h2spec's list, from Tests/Fixtures/http2, through the tunnel to an intercepted site.
@Suite(.waiting) struct HTTP2ConformanceTests {
    /// 44 of its part `generic`, 95 of RFC 9113 and 8 of RFC 7541; one of them is for its strict mode only.
    private static let count = 147

    @Test(arguments: ["h2", "http/1.1"]) func everyCheckPasses(originSpeaks version: String) throws {
        let origin = try HTTP2Origin(["--alpn", version])
        let user = try Countersign()
        try user.enroll()
        try user.allow("\(origin.url) answer=basic")
        let proxy = try RunningProxy(user, [])
        let path = version == "h2" ? "/size/100" : "/text"
        let done = try Command.run(
            Tool.python(),
            [
                "\(Tool.repository)/Tests/Fixtures/http2/checks.py", "127.0.0.1:\(proxy.port)", proxy.anchor,
                "two.test.localhost:\(origin.port)", "--path", path,
            ], in: user.folder, seconds: 900)
        let failed = done.output.split(separator: "\n").filter { $0.hasPrefix("FAILED") }
        #expect(failed.isEmpty, "\(failed)")
        #expect(done.status == 0 && done.output.hasSuffix("\(Self.count) passed, 0 failed\n"), "\(done.said)")
    }
}
