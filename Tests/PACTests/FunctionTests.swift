// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignPAC

/// The functions for scripts. Vectors are the examples of Mozilla's documentation of proxy auto-configuration files and
/// of Microsoft's of the IPv6 extensions, and cases around them.
@Suite struct FunctionTests {
    private static let names = [
        "www.mozilla.org": ["104.16.41.2"], "www.netscape.com": ["198.95.249.79"],
        "dual.example": ["2001:db8::7", "192.0.2.7"],
        "six.example": ["2001:db8:1::1"], "": ["10.0.20.4", "2001:db8::4"],
    ]

    /// One process of each engine for all cases, which computes an expression.
    private static let scripts = Dictionary(
        uniqueKeysWithValues: EngineKind.allCases.map { engine in
            (
                engine,
                Task {
                    let scripts = try Scripts(names, engine: engine)
                    try await scripts.load("function FindProxyForURL(text) { return String(eval(text)) }")
                    return scripts
                }
            )
        })

    private func expect(
        _ expression: String, _ value: String, clock: ScriptClock = thursday,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        for (engine, scripts) in Self.scripts {
            let result = try await scripts.value.decide(expression, "", clock: clock).result
            #expect(result == value, "\(engine)", sourceLocation: location)
        }
    }

    @Test(arguments: [
        // Hosts
        ("isPlainHostName('www.mozilla.org')", "false"), ("isPlainHostName('www')", "true"),
        ("isPlainHostName('::1')", "false"),
        ("dnsDomainIs('www.mozilla.org', '.mozilla.org')", "true"), ("dnsDomainIs('www', '.mozilla.org')", "false"),
        ("dnsDomainIs('www.mozilla.org', '.example.org')", "false"), ("dnsDomainIs('a.ORG', '.org')", "false"),
        ("localHostOrDomainIs('www.mozilla.org', 'www.mozilla.org')", "true"),
        ("localHostOrDomainIs('www', 'www.mozilla.org')", "true"),
        ("localHostOrDomainIs('www.google.com', 'www.mozilla.org')", "false"),
        ("localHostOrDomainIs('home.mozilla.org', 'www.mozilla.org')", "false"),
        ("localHostOrDomainIs('ww', 'www.mozilla.org')", "false"),
        ("dnsDomainLevels('www')", "0"), ("dnsDomainLevels('mozilla.org')", "1"),
        ("dnsDomainLevels('www.mozilla.org')", "2"),
        // Look-ups
        ("isResolvable('www.mozilla.org')", "true"), ("isResolvable('none.example')", "false"),
        ("isResolvable('six.example')", "false"), ("isResolvableEx('six.example')", "true"),
        ("dnsResolve('www.mozilla.org')", "104.16.41.2"), ("dnsResolve('none.example')", "null"),
        ("dnsResolve('dual.example')", "192.0.2.7"), ("dnsResolve('127.0.0.1')", "127.0.0.1"),
        ("dnsResolveEx('dual.example')", "2001:db8::7;192.0.2.7"), ("dnsResolveEx('none.example')", ""),
        ("myIpAddress()", "10.0.20.4"), ("myIpAddressEx()", "10.0.20.4;2001:db8::4"),
        ("isInNet(host = 'www.netscape.com', '198.95.249.79', '255.255.255.255')", "true"),
        ("isInNet('198.95.6.8', '198.95.0.0', '255.255.0.0')", "true"),
        ("isInNet('198.96.6.8', '198.95.0.0', '255.255.0.0')", "false"),
        ("isInNet('200.1.2.3', '192.0.0.0', '240.0.0.0')", "true"),
        ("isInNet('none.example', '0.0.0.0', '0.0.0.0')", "false"),
        ("isInNet('six.example', '0.0.0.0', '0.0.0.0')", "false"),
        ("isInNet('1.2.3.4', '1.2.3', '255.0.0.0')", "false"),
        ("isInNet('10.1.2.3', '10.0.0.0', '255')", "false"),
        ("isInNet('1.2.3.4', '256.2.3.4', '0.0.0.0')", "false"),
        ("convert_addr('104.16.41.2')", "1745889538"), ("convert_addr('x')", "0"), ("convert_addr('1.2')", "16908288"),
        // Patterns
        ("shExpMatch('http://home.netscape.com/people/ari/index.html', '*/ari/*')", "true"),
        ("shExpMatch('http://home.netscape.com/people/montulli/index.html', '*/ari/*')", "false"),
        ("shExpMatch('abc', 'a?c')", "true"), ("shExpMatch('abc', 'a?')", "false"),
        ("shExpMatch('a.c', 'a.c')", "true"),
        ("shExpMatch('abc', 'a.c')", "false"), ("shExpMatch('', '*')", "true"), ("shExpMatch('abab', '*ab')", "true"),
        ("shExpMatch('ab', '*a*b*')", "true"), ("shExpMatch('ab', '')", "false"), ("shExpMatch('aXc', 'axc')", "false"),
        // The patterns are regular expressions, as in Chromium and Firefox.
        ("shExpMatch('www.a.example', '(*.a.example|a.example)')", "true"),
        ("shExpMatch('a.example', '(*.a.example|a.example)')", "true"),
        ("shExpMatch('b.example', '(*.a.example|a.example)')", "false"),
        ("shExpMatch('aXexample', '(a.example)')", "false"),
        ("shExpMatch('a.example', '*.b.example|a.example')", "true"),
        ("shExpMatch('www.b.example:8080', '*.b.example|c.example')", "true"),
        ("shExpMatch('c.example:8080', '*.b.example|c.example')", "false"),
        ("shExpMatch('www.b.example', '*.b.example|c.example')", "true"),
        ("shExpMatch('b2.example', 'b[0-9].example')", "true"), ("shExpMatch('bb.example', 'b{2}.example')", "true"),
        ("shExpMatch(Array(5000).join('a') + 'b', '*a*b')", "true"),
        ("(function () { try { return shExpMatch('a(b', 'a(b') } catch (e) { return e.name } })()", "SyntaxError"),
        // Microsoft's
        ("isInNetEx('198.95.249.79', '198.95.249.79/32')", "true"),
        ("isInNetEx('198.95.6.8', '198.95.0.0/16')", "true"),
        ("isInNetEx('198.96.6.8', '198.95.0.0/16')", "false"),
        ("isInNetEx('3ffe:8311:ffff:abcd:1234:dead:beef:101', '3ffe:8311:ffff::/48')", "true"),
        ("isInNetEx('3ffe:8312:ffff::1', '3ffe:8311:ffff::/48')", "false"),
        ("isInNetEx('six.example', '2001:db8::/33')", "true"),
        ("isInNetEx('six.example', '2001:db8:1::/129')", "false"),
        ("isInNetEx('10.0.0.1', '::/0')", "true"), ("isInNetEx('10.0.0.1', '::/96')", "false"),
        ("isInNetEx('10.0.0.1', '::ffff:10.0.0.0/104')", "true"),
        ("isInNetEx('::ffff:10.0.0.1', '10.0.0.0/8')", "true"),
        ("isInNetEx('::ffff:11.0.0.1', '10.0.0.0/8')", "false"), ("isInNetEx('::1', '0.0.0.0/0')", "false"),
        ("isInNetEx('::ffff:10.0.0.1', '10.0.0.0/33')", "false"),
        ("isInNetEx('10.0.0.1', '10.0.0.0')", "false"),
        (
            "sortIpAddressList('10.2.3.9;2001:4898:28:3:201:2ff:feea:fc14;::1;127.0.0.1;::9')",
            "::1;::9;2001:4898:28:3:201:2ff:feea:fc14;10.2.3.9;127.0.0.1"
        ),
        ("sortIpAddressList('10.2.3.9;x')", "false"), ("sortIpAddressList('::ffff:1.2.3.4;::1')", "::1;::ffff:1.2.3.4"),
        ("getClientVersion()", "1.0"),
        ("typeof console.log('x')", "undefined"), ("localHostOrDomainIs('WWW', 'www.mozilla.org')", "false"),
    ])
    func functionsComputeWhatTheirDocumentationSays(expression: String, value: String) async throws {
        try await expect(expression, value)
    }

    /// A pattern is translated once per script, unless there are more than are kept.
    @Test func thereMayBeMorePatternsThanAreKept() async throws {
        let scripts = try Scripts()
        try await scripts.load(
            """
            function FindProxyForURL(first, host) {
              for (var i = +first; i < +first + 600; i++) if (shExpMatch(host, "*.h" + i + ".example")) return "" + i;
              return "none";
            }
            """)
        for first in (0..<10).map({ $0 * 600 }) + [0] {
            #expect(try await scripts.decide("\(first)", "a.h\(first + 599).example").result == "\(first + 599)")
            #expect(try await scripts.decide("\(first)", "a.h\(first + 600).example").result == "none")
        }
    }

    /// Functions of later editions of ECMAScript.
    @Test(arguments: [
        ("new Set(['a', 'b', 'a']).size", "2"), ("new Set(['a']).has('a')", "true"),
        ("new Set('ab').has('c')", "false"),
        ("new Set([1]).has('1')", "false"), ("new Set([NaN]).has(NaN)", "true"), ("Array.from(new Set('aba'))", "a,b"),
        ("new Set(new Set('ab')).size", "2"), ("new Set(['a', 'b'])['delete']('a')", "true"),
        ("(function (s) { s.add(s).add(s)['delete']('a'); return s.size })(new Set('a'))", "1"),
        ("(function (s) { s['delete']('a'); return Array.from(s.add('a').keys()) })(new Set('ab'))", "b,a"),
        ("new Map([['a', 1], ['b', 2]]).get('b')", "2"), ("new Map().set('a', 1).set('a', 2).get('a')", "2"),
        ("new Map([['__proto__', 1]]).get('__proto__')", "1"), ("new Map().get('constructor')", "undefined"),
        ("Array.from(new Map([['a', 1]]))", "a,1"), ("Array.from(new Map([['a', 1]]).values())", "1"),
        ("Array.from(new Map([['a', 1]]).keys()).length", "1"),
        ("(function (m, s) { m.forEach(function (v, k) { s += k + v }); return s })(new Map([['a', 1]]), '')", "a1"),
        ("(function (m) { m.clear(); return m.size + ',' + m.has('a') })(new Map([['a', 1]]))", "0,false"),
        ("['a', 'b'].includes('b')", "true"), ("['a', 'b'].includes('a', 1)", "false"), ("[NaN].includes(NaN)", "true"),
        ("[1, 2, 3].find(function (n) { return n > 1 })", "2"), ("[1].find(function () { return 0 })", "undefined"),
        ("[1, 2].findIndex(function (n) { return n > 1 })", "1"), ("[1].findIndex(function () { return 0 })", "-1"),
        ("Array.from('abc')", "a,b,c"), ("Array.from({length: 2}, function (x, i) { return i * 2 })", "0,2"),
        ("Array.of(1, 2)", "1,2"), ("[1, 2, 3, 4].fill(0, 1, -1)", "1,0,0,4"), ("Array(2).fill('x')", "x,x"),
        ("[1, [2, [3]]].flat().length", "3"), ("[1, [2, [3]]].flat(2).length", "3"),
        ("Object.values({a: 1, b: 2})", "1,2"), ("Object.entries({a: 1, b: 2}).length", "2"),
        ("Object.entries({a: 1})", "a,1"), ("Object.assign({}, {a: 1}, null, {b: 2}).b", "2"),
        ("Object.fromEntries([['a', 1]]).a", "1"),
        ("'7'.padStart(3, '0')", "007"), ("'abc'.padStart(2)", "abc"), ("'a'.padEnd(4, 'xy')", "axyx"),
        ("'abc'.includes('bc')", "true"), ("'abc'.startsWith('b', 1)", "true"), ("'abc'.startsWith('b')", "false"),
        ("'abc'.endsWith('bc')", "true"), ("'abc'.endsWith('b', 2)", "true"), ("'bc'.endsWith('abc')", "false"),
        ("'ab'.repeat(2)", "abab"), ("'[' + ' a '.trimStart() + ']'", "[a ]"), ("'[' + ' a '.trimEnd() + ']'", "[ a]"),
        ("'a.b.c'.replaceAll('.', '-')", "a-b-c"), ("'aba'.replaceAll(/a/g, 'x')", "xbx"),
        ("(function (n) { for (var i in [7]) n += i; for (var k in {}) n += k; return n })('')", "0"),
    ])
    func laterFunctionsAreThere(expression: String, value: String) async throws {
        try await expect(expression, value)
    }

    /// At 12:30:45 UTC on Thursday, 2026-01-15, which is 13:30:45 with an offset of an hour.
    @Test(arguments: [
        ("weekdayRange('MON', 'FRI')", "true"), ("weekdayRange('MON', 'FRI', 'GMT')", "true"),
        ("weekdayRange('SAT')", "false"), ("weekdayRange('THU')", "true"), ("weekdayRange('SAT', 'GMT')", "false"),
        ("weekdayRange('FRI', 'MON')", "false"), ("weekdayRange('SAT', 'THU')", "true"), ("weekdayRange('x')", "false"),
        ("dateRange(15)", "true"), ("dateRange(1)", "false"), ("dateRange(15, 'GMT')", "true"),
        ("dateRange(1, 15)", "true"),
        ("dateRange(16, 14)", "false"), ("dateRange(28, 15)", "true"), ("dateRange(15, 'JAN')", "true"),
        ("dateRange(24, 'DEC')", "false"), ("dateRange('JAN', 'MAR')", "true"), ("dateRange('FEB', 'MAR')", "false"),
        ("dateRange('DEC', 'JAN')", "true"), ("dateRange(1, 'JUN', 15, 'AUG')", "false"),
        ("dateRange(10, 'JAN', 15, 'JAN')", "true"), ("dateRange(1, 'JUN', 1995, 15, 'AUG', 2026)", "true"),
        ("dateRange(1, 'JUN', 1995, 15, 'AUG', 1995)", "false"), ("dateRange('OCT', 1995, 'MAR', 1996)", "false"),
        ("dateRange('OCT', 2025, 'MAR', 2026)", "true"), ("dateRange(2026)", "true"),
        ("dateRange(1995, 1997)", "false"),
        ("dateRange()", "false"), ("dateRange('x')", "false"), ("dateRange(15, 'JAN', 2026)", "true"),
        ("timeRange(13)", "true"), ("timeRange(12)", "false"), ("timeRange(12, 'GMT')", "true"),
        ("timeRange(9, 17)", "true"), ("timeRange(14, 17)", "false"), ("timeRange(22, 14)", "true"),
        ("timeRange(8, 30, 17, 0)", "true"), ("timeRange(13, 30, 13, 30)", "true"),
        ("timeRange(13, 31, 14, 0)", "false"),
        ("timeRange(0, 0, 0, 0, 0, 30)", "false"), ("timeRange(13, 30, 45, 13, 30, 46)", "true"),
        ("timeRange(13, 30, 46, 13, 30, 59)", "false"), ("timeRange(1, 2, 3)", "false"),
        ("new Date().getTime()", "1768480245000"), ("Date.now()", "1768480245000"),
        ("new Date(2000, 0, 1) instanceof Date", "true"),
        ("new Date(86400000).toISOString()", "1970-01-02T00:00:00.000Z"),
        ("Date.UTC(1970, 0, 2)", "86400000"), ("typeof Date()", "string"),
    ])
    func timesAreThoseOfTheCall(expression: String, value: String) async throws {
        let clock = ScriptClock(milliseconds: thursday.milliseconds, offsetMinutes: 60)
        try await expect(expression, value, clock: clock)
    }
}
