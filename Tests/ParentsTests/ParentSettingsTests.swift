// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignParents

@Suite struct ParentSettingsTests {
    private let squid = proxy(.http, "squid.corp.example", 3128)
    private let tor = proxy(.socks5h, "127.0.0.1", 9050)
    private let script = ScriptSource.url("https://pac.corp.example/p")

    private func route(
        _ parents: [String], noProxy: String = "", environment: [String: String] = [:], to url: String,
        _ results: [ScriptSource: ScriptResult] = [:]
    ) throws -> Route {
        let settings = try ParentSettings(parents: parents, noProxy: noProxy, environment: environment)
        return try settings.plan(for: try origin(url)).route(results)
    }

    @Test func withoutSettingsConnectionsAreDirect() throws {
        #expect(try route([], to: "https://a.example") == .direct(.noParent))
    }

    @Test func parentsAreTriedInOrderAndOnce() throws {
        let route = try route(["\(squid)", "\(tor),\(squid)"], to: "https://a.example")
        #expect(
            route.candidates == [Route.Candidate(.parent(squid), .setting), Route.Candidate(.parent(tor), .setting)])
    }

    @Test func exceptionsAreDirectWhateverTheParents() throws {
        let route = try route(["pac:/p"], noProxy: ".a.example", to: "https://www.a.example")
        #expect(route == .direct(.exception(setting: "--no-proxy", element: ".a.example")))
        #expect(route.candidates[0].reason.description == "--no-proxy contains .a.example")
    }

    @Test func theEnvironmentIsReadOnlyForSystem() throws {
        let environment = [
            "https_proxy": "http://squid.corp.example:3128", "no_proxy": "a.example", "http_proxy": "x:y:z",
        ]
        #expect(try route(["direct"], environment: environment, to: "https://b.example").hops == [.direct])
        #expect(throws: ParentsError.self) { try ParentSettings(parents: ["system"], environment: environment) }
        let valid = environment.filter { $0.key != "http_proxy" }
        let candidates = try route(["system"], environment: valid, to: "https://b.example").candidates
        #expect(candidates == [Route.Candidate(.parent(squid), .variable("https_proxy"))])
        let excepted = try route(["system"], environment: valid, to: "https://a.example")
        #expect(excepted == .direct(.exception(setting: "no_proxy", element: "a.example")))
        #expect(try route(["system"], environment: valid, to: "http://b.example") == .direct(.noParent))
    }

    @Test func aScriptsResultTakesThePlaceOfTheScript() throws {
        let result = try ScriptResult(parsing: "PROXY squid.corp.example:3128; DIRECT", from: script)
        let route = try route(["\(tor)", "pac:\(script)"], to: "https://a.example", [script: result])
        #expect(
            route.candidates == [
                Route.Candidate(.parent(tor), .setting), Route.Candidate(.parent(squid), .script(script)),
                Route.Candidate(.direct, .script(script)),
            ])
    }

    @Test func aScriptThatFailsPermitsNoDirectConnection() throws {
        let error = #expect(throws: ParentsError.self) { try route(["pac:\(script)"], to: "https://a.example") }
        #expect(error?.code == .noHop)
        #expect(error?.detail.contains("https://pac.corp.example/p") == true)
        #expect(try route(["pac:\(script)", "direct"], to: "https://a.example").hops == [.direct])
    }

    @Test(arguments: [
        (proxy(.http, "127.0.0.1", 3128), true), (proxy(.http, "localhost", 3128), true),
        (proxy(.https, "::1", 3128), true), (proxy(.socks5, "0.0.0.0", 3128), true),
        (proxy(.http, "127.0.0.1", 3129), false), (proxy(.http, "squid.corp.example", 3128), false),
    ])
    func aParentThatIsThisProxyIsRecognised(parent: ParentProxy, isOurs: Bool) {
        #expect(parent.isOurs(listeningOn: [3128]) == isOurs)
    }
}
