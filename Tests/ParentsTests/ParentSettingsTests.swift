// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignParents

@Suite struct ParentSettingsTests {
    private let squid = proxy(.http, "squid.corp.example", 3128)
    private let tor = proxy(.socks5h, "127.0.0.1", 9050)
    private let script = ScriptSource.url("https://pac.corp.example/p")

    private func route(
        _ parents: [String], noProxy: String? = nil, environment: [String: String] = [:], to url: String,
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

    @Test func theProxiesOfTheEnvironmentAreReadOnlyForSystem() throws {
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

    // MARK: This machine

    private static let own = [
        "http://localhost", "https://a.localhost:8443", "http://127.0.0.1:8080", "http://127.9.9.9", "https://[::1]",
        "http://[::ffff:127.0.0.1]",
    ]

    @Test(arguments: own)
    func thisMachineIsReachedDirectly(url: String) throws {
        let environment = [
            "http_proxy": "http://squid.corp.example:3128", "https_proxy": "http://squid.corp.example:1",
        ]
        for parents in [["\(squid)"], ["\(tor),\(squid)"], ["system"], ["\(squid)", "direct"]] {
            let route = try route(parents, environment: environment, to: url)
            #expect(route == .direct(.thisMachine), "\(parents)")
            #expect(route.candidates[0].reason.description == "it is this machine")
        }
    }

    @Test(arguments: own)
    func theWordOfChromiumSendsThisMachineToTheParents(url: String) throws {
        for noProxy in ["<-loopback>", ".corp.example <-Loopback>", "<-loopback>,10.0.0.0/8"] {
            #expect(try route(["\(squid)"], noProxy: noProxy, to: url).hops == [.parent(squid)], "\(noProxy)")
        }
        #expect(try route(["\(squid)"], environment: ["no_proxy": "<-loopback>"], to: url).hops == [.parent(squid)])
        #expect(try route(["\(squid)"], noProxy: "<-loopback>,127.0.0.0/8,::1,localhost", to: url).hops == [.direct])
    }

    @Test(arguments: own)
    func aScriptMaySayOtherwise(url: String) throws {
        let parents = ["\(tor)", "pac:\(script)", "direct"]
        let result = try ScriptResult(parsing: "PROXY squid.corp.example:3128", from: script)
        let asked = try route(parents, to: url, [script: result])
        #expect(asked.candidates == [Route.Candidate(.parent(squid), .script(script))])
        // It has failed.
        #expect(try route(parents, to: url) == .direct(.thisMachine))
    }

    @Test(arguments: ["http://localhost.example", "http://0.0.0.0", "http://128.0.0.1", "http://10.0.0.1"])
    func nothingElseIsThisMachine(url: String) throws {
        #expect(try route(["\(squid)"], to: url).hops == [.parent(squid)])
    }

    // MARK: no_proxy

    @Test func theUsersVariableIsTheDefaultOfNoProxy() throws {
        let environment = ["no_proxy": "a.example, ???", "NO_PROXY": "b.example"]
        let excepted = try route(["\(squid)"], environment: environment, to: "https://a.example")
        #expect(excepted == .direct(.exception(setting: "no_proxy", element: "a.example")))
        #expect(try route(["\(squid)"], environment: environment, to: "https://b.example").hops == [.parent(squid)])
        let upper = try route(["\(squid)"], environment: ["NO_PROXY": "b.example"], to: "https://b.example")
        #expect(upper == .direct(.exception(setting: "NO_PROXY", element: "b.example")))
        let given = try route(["\(squid)"], noProxy: "", environment: environment, to: "https://a.example")
        #expect(given.hops == [.parent(squid)])
    }
}
