// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignPAC

/// With libduktape; ``JavaScriptCoreTests`` has the differences.
@Suite(.serialized) struct PACEvaluatorTests {
    /// Example 1 of Mozilla's documentation.
    private static let example = """
        function FindProxyForURL(url, host) {
          if ((isPlainHostName(host) || dnsDomainIs(host, ".mozilla.org")) &&
              !localHostOrDomainIs(host, "www.mozilla.org") &&
              !localHostOrDomainIs(host, "merchant.mozilla.org")) {
            return "DIRECT";
          } else {
            return "PROXY w3proxy.mozilla.org:8080; DIRECT";
          }
        }
        """

    @Test(arguments: [
        ("http://intranet/", "intranet", "DIRECT"), ("http://a.mozilla.org/", "a.mozilla.org", "DIRECT"),
        ("http://www.mozilla.org/", "www.mozilla.org", "PROXY w3proxy.mozilla.org:8080; DIRECT"),
        ("http://example.com/", "example.com", "PROXY w3proxy.mozilla.org:8080; DIRECT"),
    ])
    func aScriptDecides(url: String, host: String, result: String) async throws {
        let scripts = try Scripts()
        try await scripts.load(Self.example)
        let decision = try await scripts.decide(url, host)
        #expect(decision == PACDecision(result: result, usesClock: false, alerts: []))
        #expect(scripts.lookUps.all == [])
    }

    @Test func theScriptSeesURLAndHost() async throws {
        let scripts = try Scripts()
        try await scripts.load(#"function FindProxyForURL(u, h) { return u + " \u00fc\ud83d\ude00 " + h; }"#)
        let decision = try await scripts.decide("http://a.example/\"\\", "a.example")
        #expect(decision.result == "http://a.example/\"\\ \u{FC}\u{1F600} a.example")
    }

    @Test func microsoftsFunctionGoesFirst() async throws {
        let scripts = try Scripts()
        try await scripts.load("function FindProxyForURL() { return 'a' }\nfunction FindProxyForURLEx() { return 'b' }")
        #expect(try await scripts.decide().result == "b")
    }

    @Test func theClockAndAlertsAreReported() async throws {
        let scripts = try Scripts()
        try await scripts.load(
            "function FindProxyForURL() { alert('x'); for (i = 0; i < 50; i++) alert(i); return timeRange(0, 23) + ''; }"
        )
        let decision = try await scripts.decide()
        #expect(decision.usesClock)
        #expect(decision.alerts == ["x", "0", "1", "2", "3", "4", "5", "6", "7", "8"])
    }

    // MARK: Look-ups

    @Test func everyHostIsLookedUpOnce() async throws {
        let scripts = try Scripts(["a.example": ["192.0.2.1"], "": ["10.0.0.1"]])
        let all = "[dnsResolve('A.example'), dnsResolve('a.EXAMPLE'), myIpAddress(), dnsResolve('b.example')]"
        #expect(try await scripts.value(of: all) == "192.0.2.1,192.0.2.1,10.0.0.1,")
        #expect(scripts.lookUps.all == [.name("a.example"), .ownAddresses, .name("b.example")])
    }

    @Test func aScriptThatCatchesEverythingStillGetsItsAddress() async throws {
        let scripts = try Scripts(["a.example": ["192.0.2.1"]])
        try await scripts.load(
            "function FindProxyForURL() { try { return dnsResolve('a.example') } catch (e) { return 'caught' } }")
        #expect(try await scripts.decide().result == "192.0.2.1")
    }

    @Test func namesOfObjectsMembersAreNamesOfHosts() async throws {
        let scripts = try Scripts()
        #expect(try await scripts.value(of: "dnsResolve('__proto__') + dnsResolve('constructor')") == "0")
        #expect(scripts.lookUps.all == [.name("__proto__"), .name("constructor")])
    }

    @Test func theCallGoesOnWithoutTheLookUpsThatAreTooMany() async throws {
        let scripts = try Scripts(["h15": ["192.0.2.15"], "h16": ["192.0.2.16"], "": ["10.0.0.1"]])
        try await scripts.load(
            """
            function FindProxyForURL() {
              var found = [];
              for (var i = 0; i < 40; i++) found.push(dnsResolve("h" + i));
              return [found[15], found[16], found.length, dnsResolve("h15"), myIpAddress()].join();
            }
            """)
        #expect(try await scripts.decide().result == "192.0.2.15,,40,192.0.2.15,10.0.0.1")
        #expect(scripts.lookUps.all == (0..<PACLimits.lookUps).map { .name("h\($0)") } + [.ownAddresses])
    }

    @Test func aScriptMakesLookUpsWhileItIsLoaded() async throws {
        let scripts = try Scripts(["a.example": ["192.0.2.1"], "": ["10.0.0.1"]])
        let usesAddresses = try await scripts.load(
            """
            var own = myIpAddress(), proxy;
            try { proxy = dnsResolve("a.example") } catch (e) { proxy = "caught" }
            function FindProxyForURL(url, host) { if (host === "bad") for (;;); return proxy + " " + own; }
            """)
        #expect(usesAddresses)
        #expect(try await scripts.decide().result == "192.0.2.1 10.0.0.1")
        #expect(await pacError { _ = try await scripts.decide("http://bad/", "bad") }?.code == .timedOut)
        #expect(try await scripts.decide().result == "192.0.2.1 10.0.0.1", "another process has loaded it")
        #expect(scripts.lookUps.all == [.ownAddresses, .name("a.example")])
        #expect(try await !scripts.load("function FindProxyForURL() { return 'DIRECT' }"))
    }

    @Test func aScriptThatFailsAfterALookUpSaysWhere() async throws {
        let error = await pacError { try await Scripts().load("dnsResolve('a.example');\nnothing()") }
        #expect(error?.code == .thrown)
        #expect(error?.detail.hasPrefix("line 2: the script failed: ReferenceError") == true, "\(error?.detail ?? "")")
    }

    // MARK: Results that are not strings

    /// In browsers, a direct connection.
    @Test(arguments: ["", "return null", "return {}", "return 7", "return ''", "return new String('PROXY a:80')"])
    func aResultThatIsNoStringIsEmpty(body: String) async throws {
        let scripts = try Scripts()
        try await scripts.load("function FindProxyForURL() { \(body) }")
        #expect(try await scripts.decide().result == "")
    }

    // MARK: Faults of the script

    @Test(arguments: [
        ("function FindProxyForURL(url, host) {\n  return \"DIRECT\"; }}", PACError.Code.syntax, "line 2, column 21: "),
        ("var a = ;", .syntax, "line 1, column 9: "), ("var a = 'x", .syntax, "line 1, column 10: "),
        ("function f() {\n", .syntax, "line 2"), ("a b", .syntax, "line 1, column 3: "),
        ("\n\n  throw new Error('no')", .thrown, "line 3: the script failed: Error: no"),
        ("undefinedFunction()", .thrown, "line 1: the script failed: ReferenceError"),
        (
            "var a = 1\nlet b = 2", .syntax,
            "line 2, column 5: SyntaxError: unterminated statement; the engine in use, libduktape, knows ECMAScript 5 only"
        ),
        ("throw 'just text'", .thrown, "the script failed: just text"),
        ("while (true) {}", .timedOut, "the script used more than"),
        ("for (var a = [];;) a.push(new Uint8Array(1 << 20))", .outOfMemory, "the script used more memory"),
        ("var a = 'x'; while (true) a += a;", .outOfMemory, "the script used more memory"),
    ])
    func aScriptThatCannotBeLoadedSaysWhere(script: String, code: PACError.Code, text: String) async throws {
        let error = await pacError { try await Scripts().load(script) }
        #expect(error?.code == code, "\(error?.detail ?? "no error")")
        #expect(error?.detail.hasPrefix(text) == true, "\(error?.detail ?? "no error")")
    }

    @Test(arguments: [
        ("", PACError.Code.noFunction, "no function FindProxyForURL"),
        ("var FindProxyForURL = 'DIRECT'", .noFunction, "no function FindProxyForURL"),
        ("function FindProxyForURL() { return Array(9000).join('x') }", .wrongResult, "more than 8192 bytes"),
        ("function FindProxyForURL() { return '\\ud800' }", .wrongResult, "not text"),
        ("function FindProxyForURL() {\n return host.x }", .thrown, "line 2: the script failed: ReferenceError"),
        ("function FindProxyForURL() { throw null }", .thrown, "the script failed: null"),
        ("function FindProxyForURL() { throw {toString: 1} }", .thrown, "the script failed"),
        ("function FindProxyForURL() { for (;;); }", .timedOut, "processor time"),
        ("function FindProxyForURL() { try { for (;;); } finally { for (;;); } }", .timedOut, "processor time"),
        ("function FindProxyForURL() { return /(a+)+$/.test(Array(40).join('a') + 'b') + '' }", .timedOut, "processor"),
        (
            // In few steps: a busy machine must not reach the time limit first.
            "function FindProxyForURL() { for (var a = [];;) a.push(new Uint8Array(1 << 20)) }", .outOfMemory,
            "at least 16 MiB"
        ),
    ])
    func aCallThatFailsSaysWhyAndTheNextOneWorks(script: String, code: PACError.Code, text: String) async throws {
        let scripts = try Scripts()
        try await scripts.load(script)
        for _ in 1...2 {
            let error = await pacError { _ = try await scripts.decide() }
            #expect(error?.code == code, "\(error?.detail ?? "no error")")
            #expect(error?.detail.contains(text) == true, "\(error?.detail ?? "no error")")
        }
        try await scripts.load("function FindProxyForURL() { return 'DIRECT' }")
        #expect(try await scripts.decide().result == "DIRECT")
    }

    @Test func aWorkerThatIsKilledIsReplacedForTheNextCall() async throws {
        let scripts = try Scripts()
        try await scripts.load("function FindProxyForURL(u, host) { if (host === 'bad') for (;;); return host }")
        #expect(await pacError { _ = try await scripts.decide("http://bad/", "bad") }?.code == .timedOut)
        #expect(try await scripts.decide("http://good/", "good").result == "good")
    }

    @Test func aScriptThatCannotBeLoadedDoesNotReplaceTheFormerOne() async throws {
        let scripts = try Scripts()
        try await scripts.load("function FindProxyForURL() { return 'one' }")
        #expect(await pacError { try await scripts.load("}") }?.code == .syntax)
        #expect(try await scripts.decide().result == "one")
        try await scripts.load("function FindProxyForURL() { return 'two' }")
        #expect(try await scripts.decide().result == "two")
    }

    @Test func textThatIsNotAScriptIsRefusedBeforeItRuns() async throws {
        let scripts = try Scripts()
        #expect(await pacError { try await scripts.load("var a; \0 var b;") }?.code == .unreadable)
        let long = String(repeating: " ", count: PACLimits.scriptBytes + 1)
        #expect(await pacError { try await scripts.load(long) }?.code == .unreadable)
        #expect(await pacError { _ = try await scripts.decide() }?.code == .noFunction)
    }

    @Test func scriptsSeeNothingOfTheEngineAndOfEachOther() async throws {
        let scripts = try Scripts()
        for name in ["Duktape", "require", "print", "process", "request", "answer"] {
            #expect(try await scripts.value(of: "typeof \(name)") == "undefined")
        }
        try await scripts.load("var left = 1; function FindProxyForURL() { return 'x' }")
        #expect(try await scripts.value(of: "typeof left") == "undefined")
    }

    @Test func scriptsThatReplaceOurFunctionsHarmOnlyThemselves() async throws {
        let scripts = try Scripts()
        try await scripts.load(
            """
            JSON.parse = JSON.stringify = Object.prototype.hasOwnProperty = Array.prototype.push = null;
            isPlainHostName = function () { return 'mine' };
            function FindProxyForURL(url, host) { alert(1); return isPlainHostName(host) + dnsResolve('a.example'); }
            """)
        #expect(try await scripts.decide().result == "minenull")
    }

    @Test func aProgramThatIsNoWorkerIsAnError() async throws {
        for path in ["/nonexistent", "/bin/true"] {
            let evaluator = PACEvaluator(program: WorkerProgram(path: path)) { _, found in found([]) }
            let result = await withCheckedContinuation { continuation in
                evaluator.load([], clock: thursday) { continuation.resume(returning: $0) }
            }
            guard case .failure(let error) = result else { return #expect(Bool(false), "\(path) runs scripts") }
            #expect(error.code == .cannotStart)
            #expect(error.detail.contains(path))
        }
    }
}
