// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignDeviceManagement

@Suite struct PropertyListTests {
    private static let head = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">

        """

    private func read(_ content: String) throws -> PropertyList {
        try PropertyList(Array((Self.head + content + "\n</plist>\n").utf8))
    }

    @Test(arguments: [
        ("<string>a &amp; b &lt;&#65;&#x20AC;&gt; &quot;&apos;</string>", PropertyList.string("a & b <A\u{20AC}> \"'")),
        ("<string/>", .string("")), ("<string></string>", .string("")), ("<string> x </string>", .string(" x ")),
        ("<string><![CDATA[a < b & c]]></string>", .string("a < b & c")),
        ("<string>a<!-- no -->b</string>", .string("ab")), ("<string>\u{20AC}</string>", .string("\u{20AC}")),
        ("<true/>", .bool(true)), ("<false></false>", .bool(false)), ("<true />", .bool(true)),
        ("<integer>-42</integer>", .integer(-42)), ("<integer> 7\n</integer>", .integer(7)),
        ("<real>1.5</real>", .real(1.5)), ("<date>2026-11-22T09:00:00Z</date>", .date("2026-11-22T09:00:00Z")),
        ("<data>\n  AAEC\n  AwQ=\n</data>", .data([0, 1, 2, 3, 4])), ("<data/>", .data([])),
        ("<array/>", .array([])), ("<dict></dict>", .dictionary([])),
        (
            "<!-- first --><array><true/><!-- then --><array><false/></array></array>",
            .array([.bool(true), .array([.bool(false)])])
        ),
        (
            "<dict><key>b</key><integer>1</integer><key>a</key><dict><key/><true/></dict></dict>",
            .dictionary([.init("b", .integer(1)), .init("a", .dictionary([.init("", .bool(true))]))])
        ),
    ])
    func everyTypeIsRead(text: String, value: PropertyList) throws {
        #expect(try read(text) == value)
    }

    @Test(arguments: [
        "", "text", "<string>", "<string>a</strin>", "<string>a<b/></string>", "<array>", "</array>", "<array></dict>",
        "<dict><true/></dict>", "<dict><key>a</key></dict>", "<dict><key>a</key><key>b</key><true/></dict>",
        "<dict><key>a</key><true/><key>a</key><true/></dict>", "<key>a</key>", "<array><key>a</key></array>",
        "<integer>1x</integer>", "<integer/>", "<integer>9223372036854775808</integer>", "<real>nan</real>",
        "<real>1e999</real>", "<date>yesterday</date>", "<date>2026-11-22 09:00:00</date>", "<data>A*B=</data>",
        "<data>AAE</data>", "<true>x</true>", "<string>&unknown;</string>", "<string>&#0;</string>",
        "<string>&#xD800;</string>", "<string>&amp</string>", "<string>&#+65;</string>", "<string>\u{1}</string>",
        "<string id=\"1\">x</string>", "<unknown/>", "<string>a</string><string>b</string>", "<!-- no end",
        "<string><![CDATA[no end</string>", "<//>", "<>", "<string", "<!DOCTYPE x>",
    ])
    func anythingElseIsNamedWithLineAndColumn(text: String) throws {
        let error = #expect(throws: DeviceManagementError.self) { try read(text) }
        #expect(error?.detail.contains("line ") == true, "\(error?.detail ?? "")")
    }

    @Test func theErrorSaysWhere() throws {
        let error = #expect(throws: DeviceManagementError.self) {
            try read("<dict>\n  <key>a</key>\n  <data>*</data></dict>")
        }
        #expect(error?.detail.contains("line 6, column 17") == true, "\(error?.detail ?? "")")
    }

    /// Entities of a document's own can grow without limit.
    @Test func declarationsAreRefused() {
        let text = "<?xml version=\"1.0\"?><!DOCTYPE plist [<!ENTITY a \"aaaa\">]><plist><string>&a;</string></plist>"
        #expect(throws: DeviceManagementError.self) { try PropertyList(Array(text.utf8)) }
    }

    @Test func aBinaryListIsNamed() {
        let error = #expect(throws: DeviceManagementError.self) { try PropertyList(Array("bplist00abc".utf8)) }
        #expect(error?.detail.contains("binary") == true)
    }

    @Test func tenThousandLevelsAreRefusedWithoutOverflow() throws {
        for element in ["array", "dict><key>k</key"] {
            let text = String(repeating: "<\(element)>", count: 10_000)
            let error = #expect(throws: DeviceManagementError.self) { try read(text) }
            #expect(error?.detail.contains("nested") == true)
        }
        let deepest = PropertyList.maximumDepth
        let fits = String(repeating: "<array>", count: deepest) + String(repeating: "</array>", count: deepest)
        #expect(try read(fits).elements?.count == 1)
    }

    @Test func thereIsALimitOfElements() throws {
        let many = "<array>" + String(repeating: "<true/>", count: PropertyList.maximumElements) + "</array>"
        let error = #expect(throws: DeviceManagementError.self) { try read(many) }
        #expect(error?.detail.contains("elements") == true)
    }

    @Test func aByteOrderMarkIsSkipped() throws {
        let text = Array("\u{FEFF}<plist><true/></plist>".utf8)
        #expect(try PropertyList(text) == .bool(true))
    }

    @Test func everyPrefixIsRefused() throws {
        let whole = Array(
            (Self.head + "<dict><key>a</key><array><data>AAEC</data><string>&amp;</string></array></dict></plist>").utf8
        )
        for length in 0..<whole.count {
            #expect(throws: DeviceManagementError.self, "\(length)") { try PropertyList(Array(whole[..<length])) }
        }
        #expect(try PropertyList(whole)["a"]?.elements?.count == 2)
    }
}
