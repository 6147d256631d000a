// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignRouting

@Suite struct ScriptTextTests {
    /// "var ü" and "var €" in several encodings.
    @Test(
        arguments: [
            (Array("var \u{FC}".utf8), nil, "var \u{FC}"), ([0x76, 0xFC], nil, "v\u{FC}"),
            ([0xEF, 0xBB, 0xBF] + Array("var \u{20AC}".utf8), nil, "var \u{20AC}"),
            ([0xEF, 0xBB, 0xBF, 0xC3, 0xBC], "text/plain; charset=iso-8859-1", "\u{FC}"),
            ([0xFE, 0xFF, 0x00, 0x76, 0x20, 0xAC], nil, "v\u{20AC}"),
            ([0xFF, 0xFE, 0x76, 0x00, 0xAC, 0x20], "text/plain;charset=utf-8", "v\u{20AC}"),
            ([0xFF, 0xFE, 0x3D, 0xD8, 0x00, 0xDE, 0x76], nil, "\u{1F600}"), ([0xFE, 0xFF], nil, ""),
            ([0x20, 0xAC], "application/x-ns-proxy-autoconfig; charset=\"UTF-16BE\"", "\u{20AC}"),
            ([0xAC, 0x20], "a/b; x=y; Charset = utf-16", "\u{20AC}"), ([0xAC], "a/b; charset=utf-16le", ""),
            ([0xC3, 0xBC], "a/b; charset=ISO-8859-1", "\u{C3}\u{BC}"),
            ([0xC3, 0xBC], "a/b; charset=x-unknown", "\u{FC}"),
            ([0x76, 0xFC], "a/b; charset=utf-8", "v\u{FFFD}"), ([0xC3, 0xBC], "a/b", "\u{FC}"), ([], nil, ""),
        ] as [([UInt8], String?, String)])
    func scriptsAreReadInTheirEncodings(bytes: [UInt8], contentType: String?, text: String) {
        let contents = ScriptContents(bytes, contentType: contentType, lifetime: .seconds(1))
        #expect(String(decoding: contents.bytes, as: UTF8.self) == text)
    }
}
