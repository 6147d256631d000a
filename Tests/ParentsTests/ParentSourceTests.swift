// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignParents

@Suite struct ParentSourceTests {
    @Test(
        arguments: [
            ("direct", [.hop(.direct)]),
            ("http://proxy.corp.example:8080", [.hop(.parent(proxy(.http, "proxy.corp.example", 8080)))]),
            ("HTTP://Proxy.Corp.Example.:8080/", [.hop(.parent(proxy(.http, "proxy.corp.example", 8080)))]),
            ("https://proxy.corp.example", [.hop(.parent(proxy(.https, "proxy.corp.example", 443)))]),
            ("socks5://[2001:DB8::1]:1080", [.hop(.parent(proxy(.socks5, "2001:db8::1", 1080)))]),
            ("socks5h://127.0.0.1", [.hop(.parent(proxy(.socks5h, "127.0.0.1", 1080)))]),
            ("wpad", [.script(.wpad)]),
            ("system", [.system]),
            ("pac:https://pac.corp.example/proxy.pac", [.script(.url("https://pac.corp.example/proxy.pac"))]),
            ("pac:/etc/proxy.pac", [.script(.file("/etc/proxy.pac"))]),
            ("pac:file:///etc/proxy.pac", [.script(.file("/etc/proxy.pac"))]),
            ("pac:a,b.pac", [.script(.file("a,b.pac"))]),
            ("pac:a,b.pac, direct", [.script(.file("a,b.pac")), .hop(.direct)]),
            (
                "socks5h://a:1,https://b,direct",
                [
                    .hop(.parent(proxy(.socks5h, "a", 1))), .hop(.parent(proxy(.https, "b", 443))), .hop(.direct),
                ]
            ),
        ] as [(String, [ParentSource])])
    func elementsOfTheSettingAreRead(text: String, sources: [ParentSource]) throws {
        #expect(try ParentSource.parse([text]) == sources)
    }

    @Test func repeatedValuesKeepTheirOrder() throws {
        let once = try ParentSource.parse(["https://a", "wpad", "direct"])
        #expect(once == [.hop(.parent(proxy(.https, "a", 443))), .script(.wpad), .hop(.direct)])
    }

    @Test(
        arguments: [
            ("", ParentsError.Code.malformedSetting, "write direct"),
            ("direct,", .malformedSetting, "write direct"),
            ("dircet", .malformedSetting, "did you mean direct?"),
            ("proxy.corp.example:8080", .malformedSetting, "write http://proxy.corp.example:8080"),
            ("http://proxy.corp.example", .malformedSetting, "write http://proxy.corp.example:PORT"),
            ("http://proxy.corp.example:8080/path", .malformedSetting, nil),
            ("http://proxy.corp.example:0", .malformedSetting, nil),
            ("http://127.1:8080", .malformedSetting, nil),
            ("http://:8080", .malformedSetting, nil),
            ("socks4://a:1080", .unsupportedKind, "socks5h://"),
            ("ftp://a:1080", .unsupportedKind, "http://"),
            ("pac:", .malformedSetting, "write direct"),
            ("pac:ftp://a/b", .malformedSetting, "write direct"),
            ("pac:http://127.1/b", .malformedSetting, nil),
        ] as [(String, ParentsError.Code, String?)])
    func errorsNameTheSettingAndTheRemedy(text: String, code: ParentsError.Code, hint: String?) {
        let error = parentsError { () throws(ParentsError) in try ParentSource.parse([text]) }
        #expect(error?.code == code)
        #expect(error?.detail.hasPrefix("--parent: ") == true)
        if let hint { #expect(error?.hint?.contains(hint) == true, "\(error?.hint ?? "no hint")") }
    }

    @Test(arguments: [
        "http://jdoe:hunter2@proxy.corp.example:8080", "jdoe:hunter2@proxy.corp.example:8080",
        "pac:https://jdoe:hunter2@pac.corp.example/p", "direct,http://jdoe:hunter2@a:1",
        "http://a:1/jdoe:hunter2@",
    ])
    func aPasswordInTheSettingIsRefusedAndNotPrinted(text: String) {
        let error = parentsError { () throws(ParentsError) in try ParentSource.parse([text]) }
        #expect(error?.code == .userInfo)
        #expect(error.map { "\($0.detail) \($0.hint ?? "")".contains("hunter2") } == false)
    }
}
