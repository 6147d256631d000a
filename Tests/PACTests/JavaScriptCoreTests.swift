// SPDX-License-Identifier: Apache-2.0
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignPAC

/// The engine with today's JavaScript, in the same process without rights.
@Suite(.serialized) struct JavaScriptCoreTests {
    private func scripts(_ known: [String: [String]] = [:]) throws -> Scripts {
        try Scripts(known, engine: .javaScriptCore)
    }

    @Test func todaysSyntaxIsRead() async throws {
        let scripts = try scripts(["a.example": ["192.0.2.1"], "": ["10.0.0.1"]])
        let usesAddresses = try await scripts.load(
            """
            class Rule { #hop; constructor(hop) { this.#hop = hop } get hop() { return this.#hop } }
            const own = myIpAddress(), rules = new Map([["a.example", new Rule("PROXY a:1")]]);
            function FindProxyForURL(url, host) {
              for (const [name, { hop }] of rules) if (host?.endsWith(name)) return `${hop}; ${own} ${dnsResolve(name)}`;
              return [..."DIRECT"].join("") ?? null;
            }
            """)
        #expect(usesAddresses)
        #expect(try await scripts.decide("http://a.example/", "a.example").result == "PROXY a:1; 10.0.0.1 192.0.2.1")
        #expect(try await scripts.decide("http://b.example/", "b.example").result == "DIRECT")
    }

    @Test(arguments: [
        ("let a = ;", PACError.Code.syntax, "line 1: SyntaxError: Unexpected token ';'"),
        ("function f() {\n", .syntax, "line 2: SyntaxError"), ("\na b", .syntax, "line 2: SyntaxError"),
        ("\n\n  throw new Error('no')", .thrown, "line 3: the script failed: Error: no"),
        ("undefinedFunction()", .thrown, "line 1: the script failed: ReferenceError"),
        ("throw 'just text'", .thrown, "the script failed: just text"),
        ("throw {toString: 1}", .thrown, "the script failed"),
        ("new RegExp('(')", .thrown, "line 1: the script failed"),
        ("while (true) {}", .timedOut, "the script used more than"),
        ("(function f() { return f() + 1 })()", .thrown, "line 1: the script failed: RangeError"),
        ("Promise.resolve().then(function again() { return Promise.resolve().then(again) })", .timedOut, "the script"),
        ("var a = 'x'; while (true) a += a;", .outOfMemory, "the script used more memory"),
    ])
    func aScriptThatCannotBeLoadedSaysWhere(script: String, code: PACError.Code, text: String) async throws {
        let error = await pacError { try await scripts().load(script) }
        #expect(error?.code == code, "\(error?.detail ?? "no error")")
        #expect(error?.detail.hasPrefix(text) == true, "\(error?.detail ?? "no error")")
    }

    /// Each ends the process in another way, or the engine reports it. The time may be used up before the memory.
    @Test(arguments: [
        "var s = Array(9999).join('x'); for (var a = [];;) a.push((s + a.length).split('x'))",
        "for (var a = [];;) a.push({x: a.length, y: [1, 2, 3]})",
        "for (var a = [];;) { var o = {}; for (var i = 0; i < 50; i++) o['p' + a.length + '_' + i] = 1; a.push(o) }",
        "for (var a = [];;) a.push(new Uint8Array(1 << 20).fill(1))", "new Uint8Array(1 << 30).fill(1)",
        "for (var m = new Map(), i = 0;; i++) m.set(i, 'v' + i)", "for (var a = [];;) a.push(a.slice())",
    ])
    func memoryIsLimited(body: String) async throws {
        let scripts = try scripts()
        try await scripts.load("function FindProxyForURL(url, host) { if (host !== 'bad') return host; \(body) }")
        for _ in 1...2 {
            let error = await pacError { _ = try await scripts.decide("http://bad/", "bad") }
            #expect(error?.code == .outOfMemory || error?.code == .timedOut, "\(error?.detail ?? "none")")
            #expect(try await scripts.decide("http://good/", "good").result == "good")
        }
    }

    /// Unreachable objects are collected, in the only thread.
    @Test func garbageIsCollected() async throws {
        let scripts = try scripts()
        try await scripts.load(
            """
            function FindProxyForURL(url, host) {
              let count = 0;
              for (let i = 0; i < 20000; i++) count += [i, String(i), {i}].length;
              return `PROXY p:${count}`;
            }
            """)
        for _ in 1...100 { #expect(try await scripts.decide().result == "PROXY p:60000") }
    }

    @Test func scriptsSeeNothingOfTheSystemAndOfEachOther() async throws {
        let scripts = try scripts()
        let names = [
            "WebAssembly", "Atomics", "SharedArrayBuffer", "setTimeout", "fetch", "XMLHttpRequest",
            "require",
            "process", "print", "gc", "imports", "readFile", "load", "importScripts", "request", "answer",
        ]
        let types = "[" + names.map { "typeof \($0)" }.joined(separator: ", ") + "]"
        #expect(try await scripts.value(of: types) == names.map { _ in "undefined" }.joined(separator: ","))
        let known = Set(
            try await scripts.value(of: "Object.getOwnPropertyNames(globalThis).filter(n => /^[a-z]/.test(n))")
                .split(separator: ",").map(String.init))
        #expect(known.contains("shExpMatch") && known.isDisjoint(with: ["window", "self", "document", "navigator"]))
        try await scripts.load("var left = 1; function FindProxyForURL() { return 'x' }")
        #expect(try await scripts.value(of: "typeof left") == "undefined")
        #expect(try await scripts.value(of: "typeof import('/etc/passwd')") == "object", "a promise that is broken")
    }

    @Test func scriptsThatReplaceOurFunctionsHarmOnlyThemselves() async throws {
        let scripts = try scripts()
        try await scripts.load(
            """
            JSON.parse = JSON.stringify = Object.prototype.hasOwnProperty = Array.prototype.push = null;
            isPlainHostName = function () { return 'mine' };
            function FindProxyForURL(url, host) { alert(1); return isPlainHostName(host) + dnsResolve('a.example'); }
            """)
        #expect(try await scripts.decide().result == "minenull")
    }

    /// The first one that is installed, and here both are.
    @Test func theEngineIsChosen() async throws {
        let path = try Scripts.program(.duktape).path
        let worker = try WorkerProcess.start(WorkerProgram(path: path))
        #expect(worker.maps.contains("libjavascriptcoregtk"))
    }

    /// It cannot reserve the memory that it wants, so that libduktape takes its place.
    @Test func anotherEngineIsUsedIfItCannotStart() async throws {
        let path = try Scripts.program(.duktape).path
        let scratch = try TemporaryFolder("limited")
        let limited = scratch.file("countersign")
        try Data("#!/bin/sh\nulimit -v 2000000\nexec \(path) \"$@\"\n".utf8)
            .write(to: URL(fileURLWithPath: limited))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: limited)
        let worker = try WorkerProcess.start(WorkerProgram(path: limited))
        #expect(worker.maps.contains("libduktape"))
    }
}
