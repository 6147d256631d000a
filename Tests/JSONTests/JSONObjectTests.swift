// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignJSON

@Suite struct JSONObjectTests {
    @Test(arguments: [
        ("plain ä", "plain ä"), ("\"\\", #"\"\\"#), ("a\r\nb\t\u{0}", #"a\u000d\nb\u0009\u0000"#),
        ("a\u{202E}b\u{9B}\u{FEFF}\u{E0041}", #"a\u202eb\u009b\ufeff\udb40\udc41"#),
        ("\u{1F}\u{7F} ", #"\u001f\u007f "#),
    ]) func textIsEscapedForJSON(_ text: String, _ escaped: String) {
        #expect(JSONObject.escaped(text) == escaped)
    }

    @Test func membersKeepTheirOrder() {
        var object = JSONObject()
        object.add("b", "x\"")
        object.add("a", UInt64(3))
        object.add("missing", ifAny: nil)
        object.add("list", ["p", "q\n"])
        object.add("none", [String]())
        #expect(object.text == #"{"b":"x\"","a":3,"list":["p","q\n"],"none":[]}"#)
    }
}
