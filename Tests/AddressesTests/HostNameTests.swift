// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import CountersignAddresses

@Suite struct HostNameTests {
    static let label63 = String(repeating: "a", count: 63)
    static let name253 = Array(repeating: String(repeating: "b", count: 49), count: 5).joined(separator: ".") + ".com"

    static let accepted: [(input: String, text: String, kind: HostName.Kind)] = [
        ("example.com", "example.com", .name), ("EXAMPLE.com", "example.com", .name),
        ("ExAmPlE.CoM.", "example.com", .name), ("wiki", "wiki", .name), ("wiki.", "wiki", .name),
        ("a-b.example", "a-b.example", .name), ("1a.example", "1a.example", .name),
        ("127.example", "127.example", .name),
        ("1.2.3.4.example", "1.2.3.4.example", .name), ("0x7f.example", "0x7f.example", .name),
        ("example.x1", "example.x1", .name), ("a.0xg", "a.0xg", .name), ("a.1e2", "a.1e2", .name),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", .name),
        ("XN--BCHER-KVA.Example", "xn--bcher-kva.example", .name),
        ("bücher.example", "xn--bcher-kva.example", .name), ("bu\u{308}cher.example.", "xn--bcher-kva.example", .name),
        ("\(label63).com", "\(label63).com", .name), (name253, name253, .name), ("\(name253).", name253, .name),
        ("localhost", "localhost", .name), ("a.demo.LOCALHOST", "a.demo.localhost", .name),
        ("127.0.0.1", "127.0.0.1", .ipv4), ("0.0.0.0", "0.0.0.0", .ipv4), ("255.255.255.255", "255.255.255.255", .ipv4),
        ("10.20.30.40", "10.20.30.40", .ipv4), ("[::1]", "::1", .ipv6), ("::1", "::1", .ipv6), ("[::]", "::", .ipv6),
        ("[2001:DB8:0:0::0001]", "2001:db8::1", .ipv6), ("[::ffff:127.0.0.1]", "127.0.0.1", .ipv4),
        ("::FFFF:7f00:1", "127.0.0.1", .ipv4),
    ]

    @Test(arguments: accepted)
    func aSpellingHasOneCanonicalForm(input: String, text: String, kind: HostName.Kind) throws {
        let host = try HostName(canonicalizing: input)
        #expect(host.text == text)
        #expect(host.kind == kind)
        #expect(try HostName(canonicalizing: host.text) == host, "the canonical form is its own")
        #expect(try HostName(canonicalizing: input, for: .forwarded) == host)
    }

    static let refused: [(input: String, code: HostNameError.Code)] = [
        ("", .empty), (".", .emptyLabel), ("..", .emptyLabel), (".example", .emptyLabel), ("a..b", .emptyLabel),
        ("example.com..", .emptyLabel),
        // User information, percent, backslash and the other delimiters of a URL.
        ("user@example.com", .userInfo), ("user:pw@example.com", .userInfo), ("@example.com", .userInfo),
        ("example.com@", .userInfo), ("%65xample.com", .forbiddenCharacter), ("example%2Ecom", .forbiddenCharacter),
        ("example.com%00", .forbiddenCharacter), ("example.com%2F.evil.test", .forbiddenCharacter),
        ("example.com\\.evil.test", .forbiddenCharacter), ("\\example.com", .forbiddenCharacter),
        ("example.com/", .forbiddenCharacter), ("example.com?", .forbiddenCharacter),
        ("example.com#", .forbiddenCharacter),
        ("example.com;a", .forbiddenCharacter), ("a,b", .forbiddenCharacter), ("a+b", .forbiddenCharacter),
        ("a!b", .forbiddenCharacter), ("a$b", .forbiddenCharacter), ("a&b", .forbiddenCharacter),
        ("a'b", .forbiddenCharacter),
        ("a(b)", .forbiddenCharacter), ("*.example.com", .forbiddenCharacter), ("a*b", .forbiddenCharacter),
        ("a=b", .forbiddenCharacter), ("a\"b", .forbiddenCharacter), ("a<b", .forbiddenCharacter),
        ("a>b", .forbiddenCharacter),
        ("a^b", .forbiddenCharacter), ("a`b", .forbiddenCharacter), ("a{b}", .forbiddenCharacter),
        ("a|b", .forbiddenCharacter),
        ("a~b", .forbiddenCharacter), ("a]b", .forbiddenCharacter),
        // White space and controls.
        (" example.com", .forbiddenCharacter), ("example.com ", .forbiddenCharacter),
        ("exa mple.com", .forbiddenCharacter),
        ("exam\tple.com", .forbiddenCharacter), ("example.com\n", .forbiddenCharacter),
        ("example.com\r\n", .forbiddenCharacter),
        ("\0example.com", .forbiddenCharacter), ("example.com\0.evil.test", .forbiddenCharacter),
        ("example\u{7F}.com", .forbiddenCharacter), ("example\u{85}.com", .international),
        // Characters that look or map like others.
        ("example\u{3002}com", .international), ("example\u{FF0E}com", .international),
        ("example\u{FF61}com", .international),
        ("ｅxample.com", .international), ("exa\u{AD}mple.com", .international), ("exa\u{200B}mple.com", .international),
        ("exa\u{200D}mple.com", .international), ("\u{212A}elvin.example", .international),
        ("\u{130}stanbul.example", .international), ("ﬁle.example", .international),
        ("\u{FEFF}example.com", .international),
        ("١.example", .international), ("a\u{FFFD}b", .international), ("example.c\u{2134}m", .international),
        ("evil.test\u{2044}.example.com", .international), ("example.com\u{FF0F}evil.test", .international),
        // Labels.
        ("\(label63)a.com", .labelTooLong), ("xn--\(label63).com", .labelTooLong), ("\(name253)x", .tooLong),
        ("x.\(name253)", .tooLong), (String(repeating: "a.", count: 600), .tooLong), ("-a.example", .misplacedHyphen),
        ("a-.example", .misplacedHyphen), ("-.example", .misplacedHyphen), ("ab--c.example", .misplacedHyphen),
        ("r3---sn.example", .misplacedHyphen), ("üa--b.example", .misplacedHyphen),
        ("xn--bcher-kva_.example", .international), ("xn--a_.example", .international),
        // A-labels that are not the encoding of a U-label.
        ("xn--.example", .international), ("xn--a.example", .international), ("xn--abc-.example", .international),
        ("xn--bcher-kv.example", .international), ("xn--99999.example", .international),
        ("xn--nxasmq6b-.example", .international), ("xn--i-7iq.ws", .international), ("xn--tda.xn--", .international),
        ("xn--ib9b.example", .international), ("xn--bcher-uma.example", .international),
        ("xn--Strae-oqA9.example", .international), ("xn--e-xbb.example", .international),
        // Text that some resolvers read as IPv4.
        ("1", .address), ("127.1", .address), ("127.0.1", .address), ("2130706433", .address), ("0", .address),
        ("0x7f000001", .address), ("0X7F.0.0.1", .address), ("0x7f.1", .address), ("0177.0.0.1", .address),
        ("127.0.0.01", .address), ("127.0.0.001", .address), ("127.0.0.1.", .address), ("127.0.0.1.1", .address),
        ("256.0.0.1", .address), ("1.2.3.256", .address), ("1.2.3.999", .address), ("1.2.3.0x4", .address),
        ("1.2.3.08", .address), ("00.0.0.0", .address), ("4294967296", .address), ("99999999999999999999", .address),
        ("example.1", .address), ("example.com.0x1", .address), ("example.0x", .address), ("a.b.c.4", .address),
        ("1.2.3.", .address), ("0x", .address), ("08", .address), ("+1.2.3.4", .forbiddenCharacter),
        ("1.2.3.-4", .misplacedHyphen), ("1.2.3.4 ", .forbiddenCharacter), ("1..3.4", .emptyLabel),
        ("1.2.3.٤", .international),
        // IPv6.
        ("[::1", .address), ("::1]", .address), ("[]", .address), ("[::1]]", .address), ("[[::1]]", .address),
        ("[127.0.0.1]", .address), ("[example.com]", .address), ("[fe80::1%eth0]", .zone), ("fe80::1%1", .zone),
        ("[fe80::1%25eth0]", .zone), ("[v1.fe80::a]", .address), ("[::1.2.3.04]", .address), ("[::127.1]", .address),
        ("[::1]:", .address), ("[::1]:443", .address), ("example.com:443", .address), ("[:]", .address),
        ("[1:2]", .address),
        ("[ ::1]", .address), ("[::1 ]", .address), ("[:: 1]", .address), ("[::١]", .address),
        ("[0:0:0:0:0:0:0:0:0]", .address),
        ("[::ffff:0x7f.0.0.1]", .address), ("[12345::]", .address), ("[::1]x", .address), ("[::1].", .address),
        ("[::1%]", .zone), ("a:b", .address), (":", .address), ("[::1/128]", .address), ("[0x::1]", .address),
        ("[::ffff:1.2.3]", .address), ("[::ffff:1.2.3.4.5]", .address), ("[1.2.3.4::]", .address), ("[-1::]", .address),
    ]

    @Test(arguments: refused)
    func ambiguousTextIsRefused(input: String, code: HostNameError.Code) {
        #expect(throws: HostNameError(code, "")) { try HostName(canonicalizing: input) }
    }

    @Test(arguments: ["_dmarc.example", "a_b.example", "A_B.Example", "_.example", "a_.b", "build_server"])
    func aListedNameMayHaveUnderscores(_ input: String) throws {
        #expect(try HostName(canonicalizing: input).text == input.lowercased())
    }

    @Test func theTablesAreAsLongAsTheyWereMeantToBe() {
        #expect(Self.refused.count >= 150)
        #expect(Fixture.rows("ipv6.tsv").count >= 60)
    }

    @Test(arguments: ["-a.example", "r3---sn.example", "xn--i-7iq.ws", "xn--.example"])
    func aForwardedHostMayHaveFormsThatCannotBeListed(_ input: String) throws {
        #expect(try HostName(canonicalizing: input.uppercased(), for: .forwarded).text == input)
        #expect(throws: HostNameError.self) { try HostName(canonicalizing: input, for: .listed) }
    }

    /// Only ASCII names are treated leniently: all other errors for a site are errors for a forwarded host too.
    @Test(arguments: refused.filter { ![.misplacedHyphen, .international].contains($0.code) })
    func aForwardedHostHasOneCanonicalFormToo(input: String, code: HostNameError.Code) {
        #expect(throws: HostNameError(code, "")) { try HostName(canonicalizing: input, for: .forwarded) }
    }

    /// Upper case always takes the slow path.
    @Test func theFastPathGivesTheSameResultAsTheSlowOne() throws {
        let plain = Self.accepted.map(\.text) + Fixture.rows("idna-accepted.tsv").map { $0[1] }
        for text in plain where HostName.isPlainName(text.utf8) {
            #expect(try HostName(canonicalizing: text.uppercased()).text == text)
        }
        for refused in Self.refused { #expect(!HostName.isPlainName(refused.input.utf8), "\(refused.input)") }
        for name in ["example.com", "a", "a-b.c1", "1.a", Self.name253, Self.label63] {
            #expect(HostName.isPlainName(name.utf8))
        }
    }

    // MARK: Foreign oracles

    @Test(arguments: Fixture.rows("ipv6.tsv"))
    func addressesAreWrittenAsPythonWritesThem(_ row: [String]) throws {
        if row[1] == "refused" {
            #expect(throws: HostNameError.self) { try HostName(canonicalizing: "[\(row[0])]") }
        } else {
            #expect(try HostName(canonicalizing: "[\(row[0])]").text == row[1])
        }
    }

    @Test(arguments: Fixture.rows("ipv6.tsv").filter { $0[1].contains(":") })
    func addressBytesAreWhatTheCLibraryReads(_ row: [String]) throws {
        var expected = [UInt8](repeating: 0, count: 16)
        #expect(inet_pton(AF_INET6, row[0], &expected) == 1)
        #expect(try HostName(canonicalizing: "[\(row[0])]").addressBytes == expected)
    }

    /// `inet_aton` reads every form of IPv4 that a resolver might accept: no name may be one.
    @Test func noNameIsAnAddressToTheCLibrary() {
        let spellings = Self.accepted.map(\.input) + Self.refused.map(\.input)
        for spelling in spellings {
            guard let host = try? HostName(canonicalizing: spelling, for: .forwarded) else { continue }
            var address = in_addr()
            let isAddress = inet_aton(host.text, &address) != 0
            #expect(isAddress == (host.kind == .ipv4), "\(spelling)")
            if host.kind == .ipv4 {
                #expect(withUnsafeBytes(of: address) { Array($0) } == host.addressBytes)
            }
        }
    }

    @Test(arguments: Fixture.rows("idna-accepted.tsv"))
    func internationalNamesBecomeWhatTheIdnaPackageMakesOfThem(_ row: [String]) throws {
        let host = try HostName(canonicalizing: row[0])
        #expect(host.text == row[1])
        #expect(try HostName(canonicalizing: row[1]) == host, "the A-labels are accepted")
        #expect(try HostName(canonicalizing: row[2]) == host, "the U-labels are accepted")
    }

    @Test(arguments: Fixture.rows("idna-refused.tsv"))
    func labelsThatTheIdnaPackageRefusesAreRefused(_ row: [String]) {
        #expect(throws: HostNameError.self) { try HostName(canonicalizing: row[0]) }
    }

    // MARK: Properties of a host

    @Test func loopbackIsKnownByNameAndByAddress() throws {
        for name in ["localhost", "LOCALHOST.", "basic.demo.localhost"] {
            #expect(try HostName(canonicalizing: name).isLoopbackName)
        }
        for name in ["notlocalhost", "localhost.example", "127.0.0.1", "::1"] {
            #expect(try !HostName(canonicalizing: name).isLoopbackName)
        }
        for address in ["127.0.0.1", "127.255.0.9", "[::1]", "[::ffff:127.0.0.1]"] {
            #expect(try HostName(canonicalizing: address).isLoopbackAddress)
        }
        for host in ["128.0.0.1", "12.7.0.0", "[::2]", "localhost", "127.example"] {
            #expect(try !HostName(canonicalizing: host).isLoopbackAddress)
        }
    }

    @Test func aParentIsTheNameWithoutItsFirstLabel() throws {
        #expect(try HostName(canonicalizing: "a.b.c").parent?.parent?.text == "c")
        #expect(try HostName(canonicalizing: "c").parent == nil)
        #expect(try HostName(canonicalizing: "1.2.3.4").parent == nil)
    }

    @Test func anErrorQuotesItsInputAsPrintableASCII() {
        let input = "a\u{202E}b\n\"\\" + String(repeating: "x", count: 100)
        #expect {
            try HostName(canonicalizing: input)
        } throws: { error in
            let detail = (error as? HostNameError)?.detail ?? ""
            return detail.contains(#""a\u{202E}b\u{A}\"\\xxx"#) && detail.contains("xxx...\"")
                && detail.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        }
    }
}
