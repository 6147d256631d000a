// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignHTTP1

/// The status of a head that is refused or incomplete.
@Suite struct UnreadStatusTests {
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n", 200), ("HTTP/1.1 401\r\n", 401), ("HTTP/1.1 407 ", 407), ("HTTP/2.0 500 X", 500),
        ("HTTP/1.1 200\n", 200), ("HTTP/1.1 999 \u{1}", 999), ("HTTP/1.1 100 Continue\r\n", 100),
        ("http/1.1 401 x", 401), ("HTTP/1.1  407 x", 407), ("HTTP/1.1   407", nil), ("HTTP/1.1           ", nil),
        ("", nil), ("HTTP/1.1 200", nil), ("HTTP/1.1 2000", nil), ("HTTP/1.1 099 x", nil),
        ("HTTP/1.1\t200 OK", 200), ("HTTP/1.1 20x OK", nil), ("ICY 200 OK    ", nil),
    ])
    func theStatusIsReadWhateverElseIsWrong(text: String, status: Int?) {
        let bytes = Array(text.utf8)
        #expect(ResponseHead.status(atStartOf: bytes.span.bytes) == status)
    }
}
