// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignSitePolicy

@Suite struct SiteListErrorTests {
    static func problems(_ files: (name: String, text: String)...) -> [SiteListError.Problem] {
        do {
            _ = try SiteList(files: files)
            return []
        } catch {
            return error.problems
        }
    }

    private static let badCookies =
        "cookies= must have names of 1 to 256 letters, digits and ! $ % & ' * + - . ^ _ ` | ~"

    private static let brokerPages = "answer=broker is for Microsoft's sign-in pages only"

    /// A faulty line, the column of the fault, the message, and a part of the hint.
    static let faults: [(line: String, column: Int, message: String, hint: String?)] = [
        // Options.
        ("https://a.example awnser=basic", 19, #"unknown option "awnser""#, #"did you mean "answer"?"#),
        ("a.example\tcolour=red", 11, #"unknown option "colour""#, "known words: answer, credential"),
        ("a.example basic", 11, #"unknown option "basic""#, "write answer=basic"),
        ("a.example =basic", 11, #"unknown option """#, "known words:"),
        ("a.example Answer=basic", 11, #"unknown option "Answer""#, #"did you mean "answer"?"#),
        ("a.example answer", 11, #"the option "answer" has no value"#, "write answer=basic"),
        ("a.example  answer=", 12, #"the option "answer" has no value"#, "without white space"),
        ("a.example answer=basic answer=ntlm", 24, #"the option "answer" is given twice"#, "keep one"),
        ("a.example answer=bassic", 18, #"unknown scheme "bassic""#, #"did you mean "basic"?"#),
        ("a.example answer=ntlm,bassic", 23, #"unknown scheme "bassic""#, #"did you mean "basic"?"#),
        ("a.example answer=kerberos", 18, #"unknown scheme "kerberos""#, "Kerberos is called negotiate"),
        ("a.example answer=basic,mTLS", 24, #"unknown scheme "mTLS""#, "mutual TLS is called certificate"),
        (
            "a.example answer=unheardof", 18, #"unknown scheme "unheardof""#,
            "known words: certificate, pkeyauth, negotiate, ntlm, digest, bearer, basic, broker"
        ),
        ("a.example delegate=yes", 20, #"unknown value "yes" of delegate"#, "write policy"),
        ("a.example charset=latin-1", 19, #"unknown value "latin-1" of charset"#, "write utf-8 or latin1"),
        ("a.example answer=basic,basic", 24, #"the scheme "basic" is given twice"#, nil),
        ("a.example answer=basic,", 24, #"unknown scheme """#, "known words:"),
        ("a.example answer=,basic", 18, #"unknown scheme """#, nil),
        ("a.example answer=BASIC", 18, #"unknown scheme "BASIC""#, nil),
        ("a.example preempt=maybe", 19, #"unknown value "maybe" of preempt"#, "write yes or no"),
        ("a.example intercept=No", 21, #"unknown value "No" of intercept"#, "write yes or no"),
        ("a.example plaintext=yes", 11, "plaintext=yes has no effect for https", "http://"),
        ("https://*.a.example answer=basic plaintext=yes", 34, "plaintext=yes has no effect for https", nil),
        ("a.example credential=a/b", 22, #""a/b" cannot be the name of a credential"#, "1 to 64"),
        ("a.example identity=größe", 20, #""gr\u{F6}\u{DF}e" cannot be the name of an identity"#, "1 to 64"),
        ("a.example domain=ACME\\jdoe", 18, #""ACME\\jdoe" is not a domain"#, "ACME"),
        ("a.example spn=web", 15, #""web" is not a service principal name"#, "HTTP/host"),
        ("a.example spn=HTTP/", 15, #""HTTP/" is not a service principal name"#, "HTTP/host"),
        ("a.example spn=HTTP/a b", 22, #"unknown option "b""#, nil),
        // The identity broker's header.
        ("a.example answer=broker", 11, brokerPages, "https://login.microsoftonline.com"),
        ("http://login.microsoftonline.com answer=broker", 34, brokerPages, nil),
        ("login.microsoftonline.com:8443 answer=broker", 32, brokerPages, nil),
        ("*.login.microsoftonline.com answer=basic,broker", 29, brokerPages, nil),
        ("*.microsoftonline.com answer=broker", 23, brokerPages, nil),
        ("login.microsoftonline.us answer=broker", 26, brokerPages, nil),
        ("login.microsoftonline.com answer=broker,broker", 41, #"the scheme "broker" is given twice"#, nil),
        (
            "login.microsoftonline.com intercept=no answer=broker", 40,
            "answer=broker has no effect with intercept=no", "remove one"
        ),
        // Shared sessions.
        ("a.example session=corp", 11, "session= shares no cookie", "add cookies="),
        ("a.example cookies=sid", 11, "cookies= has no effect without session=", "session=GROUP"),
        ("a.example session=.x cookies=sid", 19, #"".x" cannot be the name of a group"#, "letter or digit"),
        ("a.example session=c cookies=a,,b", 29, badCookies, "commas"),
        ("a.example session=c cookies=a,a", 29, "cookies= has a name twice", "commas"),
        ("a.example cookies=a;b session=c", 19, badCookies, nil),
        ("http://a.example session=c cookies=a", 18, "session= is for https only", "https://"),
        ("*.a.example session=c cookies=a", 13, "session= is for one host", "its own line"),
        ("co.uk session=c cookies=a", 7, "anybody can register names below co.uk", "the host"),
        ("a.example session=c cookies=a intercept=no", 11, "session= has no effect with intercept=no", "remove one"),
        // Pages of other sites.
        ("a.example cross-site=", 11, #"the option "cross-site" has no value"#, "https://app.corp.example"),
        (
            "a.example cross-site=app.corp.example", 22,
            #"cross-site=: "app.corp.example" does not begin with https://"#, "with its scheme"
        ),
        (
            "a.example cross-site=https://b.example,https://c.example/x", 40,
            #"cross-site=: something follows the host in "https://c.example/x""#, "no path"
        ),
        (
            "a.example cross-site=https://b.example/", 22,
            #"cross-site=: something follows the host in "https://b.example/""#, nil
        ),
        ("a.example cross-site=https://b.example,", 40, "an origin is missing", "cross-site=https://app"),
        ("a.example cross-site=null", 22, "null stands for every page without an origin", "name the origins"),
        ("a.example cross-site=*", 22, #"cross-site= has no wildcards: "*""#, "each origin"),
        (
            "a.example cross-site=https://*.b.example", 22, #"cross-site= has no wildcards: "https://*.b.example""#,
            "each origin"
        ),
        (
            "a.example cross-site=https://b.example,HTTPS://B.example:443", 40,
            #"the page "https://b.example" is given twice"#, "keep one"
        ),
        (
            "a.example cross-site=https://b.example:0", 22, #"cross-site=: "0" is not a port from 1 to 65535"#,
            "leave out the port"
        ),
        (
            "a.example cross-site=https://u@b.example", 22,
            #"cross-site=: a user name is not allowed in "u@b.example""#, "no user name"
        ),
        (
            "a.example cross-site=https://b.example cross-site=https://c.example", 40,
            #"the option "cross-site" is given twice"#, nil
        ),
        (
            "a.example cross-site=https://b.example intercept=no", 11, "cross-site= has no effect with intercept=no",
            "remove one"
        ),
        (
            "proxy://p.example:3128 cross-site=https://b.example", 24, "cross-site= has no effect for a parent proxy",
            "remove"
        ),
        // Sites.
        ("https://user@a.example", 1, #"a user name is not allowed in "user@a.example""#, "credential set"),
        (
            "  https://a.example/x", 3, #"a site must not have a path or query: "https://a.example/x""#,
            "scheme, host and port"
        ),
        ("https://10.0.0.0/8", 1, #"address ranges cannot be listed: "https://10.0.0.0/8""#, "list each address"),
        ("10.0.0.0/8", 1, #"address ranges cannot be listed: "10.0.0.0/8""#, "list each address"),
        ("https://[fd00::]/64", 1, #"address ranges cannot be listed: "https://[fd00::]/64""#, "list each address"),
        ("https://10.0.0.1/tools", 1, #"a site must not have a path or query: "https://10.0.0.1/tools""#, nil),
        ("https://a.example/8", 1, #"a site must not have a path or query: "https://a.example/8""#, nil),
        ("https://a.example/", 1, #"a site must not have a path or query: "https://a.example/""#, nil),
        ("a.example?q=1", 1, #"a site must not have a path or query: "a.example?q=1""#, nil),
        ("ftp://a.example", 1, #"the scheme "ftp" is neither http nor https"#, "no scheme for https"),
        ("https://", 1, #"there is no host in """#, nil),
        ("https://a.example:0", 19, #""0" is not a port from 1 to 65535"#, nil),
        ("https://a.example:65536", 19, #""65536" is not a port from 1 to 65535"#, "leave out the port"),
        ("https://a.example:", 19, #""" is not a port from 1 to 65535"#, nil),
        ("*", 1, #""*" would list every site"#, "https://*.corp.example"),
        ("https://*", 1, #""https://*" would list every site"#, nil),
        ("https://*:443", 1, #""https://*:443" would list every site"#, nil),
        ("a.*.example", 1, #"the wildcard in "a.*.example" is not a whole first label"#, nil),
        ("*a.example", 1, #"the wildcard in "*a.example" is not a whole first label"#, nil),
        ("*.*.example", 1, #"the wildcard in "*.*.example" is not a whole first label"#, nil),
        ("https://*.", 1, #""https://*." would list every site"#, nil),
        ("*.com", 1, #""*.com" would match every site below a public suffix"#, "a domain that you own"),
        ("*.com.:8443", 1, #""*.com.:8443" would match every site below a public suffix"#, nil),
        ("*.CO.UK", 1, #""*.CO.UK" would match every site below a public suffix"#, nil),
        ("*.github.io", 1, #""*.github.io" would match every site below a public suffix"#, nil),
        ("*.localhost", 1, #""*.localhost" would match every site below a public suffix"#, nil),
        ("*.10.0.0.1", 1, #"an address has no subdomains: "*.10.0.0.1""#, nil),
        ("*.[::1]", 1, #"an address has no subdomains: "*.[::1]""#, nil),
        ("*.0.0.1", 1, #""0.0.1" is neither a name nor a dotted quad without leading zeros"#, "four decimal numbers"),
        ("2001:db8::1", 1, #"an IPv6 address must be in brackets: "2001:db8::1""#, "brackets"),
        (
            "answer=basic", 1, #"the character "=" is not allowed in the host "answer=basic""#,
            "write the site first"
        ),
        ("♥.example", 1, #"the character "\u{2665}" is not allowed in the label "\u{2665}" (RFC 5892)"#, "A-label"),
        (
            "a.example\u{A0}answer=basic", 1,
            #"the character "=" is not allowed in the host "a.example\u{A0}answer=basic""#, nil
        ),
        // Characters.
        ("a.example\u{0} answer=basic", 10, #"the control character "\u{0}""#, "remove it"),
        ("a.example # \u{1B}[31m", 13, #"the control character "\u{1B}""#, "remove it"),
        ("a.example\rb.example", 10, #"the control character "\u{D}""#, nil),
        ("\u{9B}", 1, #"the control character "\u{9B}""#, nil),
        ("a\u{FFFD}.example", 2, "the text is not UTF-8", "save the file as UTF-8"),
        ("a.example \u{FEFF}answer=basic", 11, #"unknown option "\u{FEFF}answer""#, nil),
    ]

    @Test(arguments: faults)
    func aFaultIsNamedWhereItIs(line: String, column: Int, message: String, hint: String?) throws {
        let problems = Self.problems((name: "AllowedSites/work.sites", text: "# one\n\n\(line)\nz.example\n"))
        try #require(problems.count == 1, "\(problems)")
        #expect(problems[0].description == "AllowedSites/work.sites:3:\(column): \(message)")
        if let hint { #expect(problems[0].hint?.contains(hint) == true, "\(problems[0].hint ?? "no hint")") }
    }

    @Test func everyFaultIsCollected() {
        let problems = Self.problems(
            (name: "a.sites", text: "*.com awnser=x identity=\nok.example\n"),
            (name: "b.sites", text: "a..b\nok.example"))
        #expect(
            problems.map { "\($0.file):\($0.line):\($0.column)" } == [
                "a.sites:1:1", "a.sites:1:7", "a.sites:1:16", "b.sites:1:1", "b.sites:2:1",
            ])
        #expect(SiteListError(problems: problems).description.split(separator: "\n").count == 5)
    }

    @Test(arguments: [
        ("https://a.example answer=basic", "A.Example.:443 answer=ntlm"), ("*.a.example", "https://*.A.example:443"),
        ("bücher.example", "xn--bcher-kva.example"), ("[::1]", "https://[0:0::1]"), ("10.0.0.1", "[::ffff:10.0.0.1]"),
        ("http://a.example", "http://a.example:80"), ("https://a.example:80", "https://a.example:80"),
    ])
    func theSamePatternTwiceNamesBothLines(first: String, second: String) throws {
        let problems = Self.problems((name: "a.sites", text: "# one\n\(first)"), (name: "b.sites", text: "  \(second)"))
        try #require(problems.count == 1, "\(problems)")
        #expect(problems[0].description.hasPrefix("b.sites:1:3: "))
        #expect(problems[0].message.hasSuffix("is already listed at a.sites:2"))
    }

    @Test func differentSchemesPortsAndWildcardsAreDifferentPatterns() throws {
        let text = "a.example\nhttp://a.example\nhttps://a.example:80\n*.a.example\nb.a.example"
        #expect(Self.problems((name: "a.sites", text: text)) == [])
    }

    @Test(arguments: [
        "\u{FEFF}a.example answer=basic\nb.example", "a.example answer=basic\r\nb.example\r\n",
        "\t a.example\t answer=basic\t \n\nb.example  ", "a.example answer=basic# comment\nb.example #\n",
        "#\n# x\na.example answer=basic\n\n  \n\tb.example",
    ])
    func marksLineEndsAndWhiteSpaceAreTolerated(_ text: String) throws {
        let list = try SiteListTests.list(text)
        #expect(list.rules.map(\.pattern.description) == ["https://a.example", "https://b.example"])
        #expect(list.rules[0].answer == [.basic])
    }

    @Test func aStoredNameIsSixtyFourBytesAtMost() {
        let name = String(repeating: "n", count: 64)
        #expect(Self.problems((name: "a", text: "a.example identity=\(name) credential=\(name)")) == [])
        #expect(Self.problems((name: "a", text: "a.example identity=\(name)n credential=\(name)n")).count == 2)
        for good in ["a", "A.b_c-9", "..", "-"] { #expect(SiteRule.isStoredName(good)) }
        for bad in ["", "a b", "a\n", "é", "a/b", "a\\b", "a:b", "a\0"] { #expect(!SiteRule.isStoredName(bad)) }
    }

    @Test func aFullSuffixListIsApplied() {
        let suffixes = PublicSuffixes(parsing: "com\ncorp.example")
        #expect(throws: SiteListError.self) {
            try SiteList(files: [(name: "a", text: "*.corp.example")], publicSuffixes: suffixes)
        }
        #expect(throws: Never.self) {
            try SiteList(files: [(name: "a", text: "corp.example\n*.a.corp.example")], publicSuffixes: suffixes)
        }
    }
}
