// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import CountersignParents

@Suite struct RouteChooserTests {
    private let first = proxy(.http, "a.example", 8080)
    private let second = proxy(.http, "b.example", 8080)

    private func route(_ hops: NextHop...) throws -> Route {
        try #require(Route(hops.map { Route.Candidate($0, .setting) }))
    }

    private func hops(_ chooser: RouteChooser, _ route: Route, after: Duration) -> [NextHop] {
        chooser.order(route, at: start + after).map(\.hop)
    }

    @Test func aDeadParentIsTriedLastForFiveMinutes() throws {
        var chooser = RouteChooser()
        let route = try route(.parent(first), .parent(second))
        #expect(hops(chooser, route, after: .zero) == [.parent(first), .parent(second)])
        chooser.parentFailed(first, at: start)
        #expect(hops(chooser, route, after: .zero) == [.parent(second), .parent(first)])
        #expect(hops(chooser, route, after: .seconds(299)) == [.parent(second), .parent(first)])
        #expect(hops(chooser, route, after: .seconds(300)) == [.parent(first), .parent(second)])
    }

    @Test func aFailureOfADeadParentDoesNotProlongItsDeath() throws {
        var chooser = RouteChooser()
        chooser.parentFailed(first, at: start)
        chooser.parentFailed(first, at: start + .seconds(200))
        #expect(!chooser.isDead(.parent(first), at: start + .seconds(300)))
        chooser.parentFailed(first, at: start + .seconds(301))
        #expect(chooser.isDead(.parent(first), at: start + .seconds(600)))
    }

    @Test func directConnectionsNeverDieAndAreNeverAdded() throws {
        var chooser = RouteChooser()
        chooser.parentFailed(first, at: start)
        #expect(hops(chooser, try route(.parent(first)), after: .zero) == [.parent(first)])
        #expect(hops(chooser, try route(.parent(first), .direct), after: .zero) == [.direct, .parent(first)])
        #expect(!chooser.isDead(.direct, at: start))
    }

    @Test func deadParentsAreProbedEveryMinuteUntilTheyAnswer() {
        var chooser = RouteChooser()
        chooser.parentFailed(first, at: start)
        chooser.parentFailed(second, at: start + .seconds(30))
        #expect(chooser.probesDue(at: start + .seconds(59)) == [])
        #expect(chooser.probesDue(at: start + .seconds(60)) == [first])
        #expect(chooser.probesDue(at: start + .seconds(60)) == [])
        #expect(chooser.probesDue(at: start + .seconds(120)) == [first, second])
        chooser.parentAnswered(first)
        #expect(!chooser.isDead(.parent(first), at: start + .seconds(121)))
        #expect(chooser.probesDue(at: start + .seconds(200)) == [second])
        #expect(chooser.probesDue(at: start + .seconds(330)) == [])
    }

    @Test func theParentOfAnotherKindIsAlive() {
        var chooser = RouteChooser()
        chooser.parentFailed(first, at: start)
        #expect(!chooser.isDead(.parent(proxy(.https, "a.example", 8080)), at: start))
        #expect(!chooser.isDead(.parent(proxy(.http, "a.example", 8081)), at: start))
    }

    @Test func anotherNetworkRevivesAll() {
        var chooser = RouteChooser()
        chooser.parentFailed(first, at: start)
        chooser.networkChanged()
        #expect(!chooser.isDead(.parent(first), at: start))
    }

    @Test func scriptsThatInventParentsDoNotFillTheMemory() {
        var chooser = RouteChooser()
        for number in 0...RouteChooser.maximumDeaths {
            chooser.parentFailed(proxy(.http, "p\(number).example", 1), at: start + .milliseconds(number))
        }
        let now = start + .seconds(1)
        #expect(!chooser.isDead(.parent(proxy(.http, "p0.example", 1)), at: now))
        #expect(chooser.isDead(.parent(proxy(.http, "p1.example", 1)), at: now))
        #expect(chooser.isDead(.parent(proxy(.http, "p\(RouteChooser.maximumDeaths).example", 1)), at: now))
    }

    // MARK: The scripts' view, and their locations

    @Test func scriptsSeeNoPathOfAnHTTPSURL() throws {
        let secret = ScriptView(try origin("https://A.example:8443/"), path: "/private?token=1")
        #expect(secret.url == "https://a.example:8443/")
        #expect(secret.host == "a.example")
        #expect(ScriptView(try origin("http://a.example/"), path: "/x?y").url == "http://a.example/x?y")
        #expect(ScriptView(try origin("http://[::1]:81/"), path: "").url == "http://[::1]:81/")
        #expect(ScriptView(try origin("http://[::1]:81/"), path: "").host == "::1")
    }

    @Test func decisionsAreForgottenInTime() throws {
        var cache = DecisionCache()
        let view = ScriptView(try origin("https://a.example/"), path: "/1")
        let result = try ScriptResult(parsing: "DIRECT", from: .wpad)
        cache.store(result, for: view, usesClock: false, at: start)
        let other = ScriptView(try origin("https://a.example/"), path: "/2")
        #expect(cache.result(for: other, at: start + .seconds(299)) == result)
        #expect(cache.result(for: other, at: start + .seconds(300)) == nil)
        cache.store(result, for: view, usesClock: true, at: start)
        #expect(cache.result(for: view, at: start + .seconds(29)) == result)
        #expect(cache.result(for: view, at: start + .seconds(30)) == nil)
        #expect(cache.result(for: ScriptView(try origin("https://b.example/"), path: "/"), at: start) == nil)
    }

    @Test func decisionsInUseStayWhenOthersFillTheCache() throws {
        var cache = DecisionCache()
        let result = try ScriptResult(parsing: "DIRECT", from: .wpad)
        func view(_ name: String) throws -> ScriptView { ScriptView(try origin("https://\(name).example/"), path: "") }
        cache.store(result, for: try view("used"), usesClock: false, at: start)
        cache.store(result, for: try view("unused"), usesClock: false, at: start)
        for number in 0..<3 * DecisionCache.generationCount {
            cache.store(result, for: try view("p\(number)"), usesClock: false, at: start)
            #expect(cache.result(for: try view("used"), at: start) == result)
        }
        #expect(cache.result(for: try view("unused"), at: start) == nil)
        cache.removeAll()
        #expect(cache.result(for: try view("used"), at: start) == nil)
    }

    @Test(arguments: [
        ("eng.corp.example", ["http://wpad.eng.corp.example/wpad.dat", "http://wpad.corp.example/wpad.dat"]),
        ("corp.co.test", ["http://wpad.corp.co.test/wpad.dat"]), ("co.test", []), ("localdomain", []), ("10.0.0.1", []),
    ])
    func discoveryStaysBelowPublicSuffixes(domain: String, urls: [String]) {
        let suffixes: Set<String> = ["example", "test", "co.test"]
        #expect(WPADNames.urls(forDomain: host(domain)) { suffixes.contains($0.text) } == urls)
    }
}
