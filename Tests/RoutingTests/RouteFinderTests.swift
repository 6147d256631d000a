// SPDX-License-Identifier: Apache-2.0
import CountersignParents
import Synchronization
import Testing

@testable import CountersignRouting

@Suite struct RouteFinderTests {
    private static let choice = """
        function FindProxyForURL(url, host) {
            if (host == "intra.example") return "DIRECT";
            return "PROXY a.example:8080; SOCKS5 b.example; DIRECT";
        }
        """

    @Test func fixedParentsAreKnownAtOnce() throws {
        let finder = try Scene().finder(["http://a.example:8080", "direct"], noProxy: ".intra.example")
        #expect(try finder.known("https://www.example/") == ["http://a.example:8080", "direct"])
        #expect(try finder.known("https://git.intra.example/") == ["direct"])
    }

    @Test func theReportHasWhatFails() async throws {
        let scene = Scene()
        let finder = try scene.finder(["http://a.example:8080", "pac:/proxy.pac", "direct"])
        await finder.load()
        let (listed, other) = (try proxy("a.example", 8080), try proxy("b.example", 80))
        finder.parentFailed(other)
        let report = finder.report
        #expect(report.parents.map(\.parent) == [listed, other])
        #expect(report.parents[0].lastFor == nil)
        #expect(report.parents[1].lastFor.map { (.zero..<RouteChooser.memory).contains($0) } == true)
        #expect(report.scripts.map(\.fault) == ["--parent: the script /proxy.pac: there is none"])
        scene.serve(Self.choice)
        await finder.load()
        finder.parentAnswered(other)
        #expect(finder.report.scripts.map(\.fault) == [nil])
        #expect(finder.report.parents.map(\.parent) == [listed])
    }

    @Test func aScriptFindsNoAddressOfANameWithANUL() async throws {
        let scene = Scene()
        scene.serve(
            """
            function FindProxyForURL(url, host) {
                var found = [dnsResolve("localhost\\0x"), isResolvable("localhost\\0"), dnsResolve("localhost")];
                return "PROXY " + (found[0] === null && !found[1] && found[2] !== null) + ".example:80";
            }
            """)
        let finder = try scene.finder(["pac:/proxy.pac"])
        #expect(await finder.load() == [])
        #expect(try await finder.hops("https://www.example/") == ["http://true.example:80"])
    }

    @Test func aScriptIsAskedOnceForEachView() async throws {
        let scene = Scene()
        scene.serve(Self.choice)
        let finder = try scene.finder(["pac:/proxy.pac"])
        #expect(await finder.load() == [])
        #expect(try finder.known("https://www.example/a") == nil)
        let all = ["http://a.example:8080", "socks5h://b.example:1080", "direct"]
        #expect(try await finder.hops("https://www.example/a") == all)
        #expect(try finder.known("https://www.example/b") == all, "a script does not see the path of https")
        #expect(try finder.known("http://www.example/a") == nil)
        #expect(try await finder.hops("http://intra.example/") == ["direct"])
        await finder.load()
        #expect(try finder.known("https://www.example/b") == nil)
    }

    @Test func concurrentQuestionsShareAnEvaluation() async throws {
        let scene = Scene()
        scene.serve(
            "var calls = 0; function FindProxyForURL(url, host) { calls++; return 'PROXY c' + calls + '.example:80'; }")
        let finder = try scene.finder(["pac:/proxy.pac"])
        await finder.load()
        let answers = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<50 { group.addTask { try await finder.hops("https://www.example/") } }
            return try await group.reduce(into: Set<[String]>()) { $0.insert($1) }
        }
        #expect(answers == [["http://c1.example:80"]])
    }

    @Test func aScriptThatCannotBeLoadedLeavesTheLastGoodOneInForce() async throws {
        let scene = Scene()
        scene.serve(Self.choice)
        let finder = try scene.finder(["pac:https://pac.example/proxy.pac"])
        await finder.load()
        let version = finder.version
        scene.serve("function (")
        let faults = await finder.load()
        #expect(faults.count == 1 && faults[0].contains("the last good copy is used"), "\(faults)")
        #expect(faults[0].hasPrefix("--parent: the script https://pac.example/proxy.pac: line 1"), "\(faults)")
        #expect(try await finder.hops("https://intra.example/") == ["direct"])
        #expect(finder.version != version, "reading again may follow a change of the network")
    }

    @Test func aStartWithoutNetworkUsesTheStoredCopy() async throws {
        let scene = Scene()
        scene.serve(Self.choice)
        await (try scene.finder(["pac:https://pac.example/proxy.pac"])).load()
        #expect(scene.stored.withLock { $0 } == Array(Self.choice.utf8))
        scene.fail("no connection to pac.example")
        let finder = try scene.finder(["pac:https://pac.example/proxy.pac"])
        #expect(
            await finder.load() == [
                "--parent: the script https://pac.example/proxy.pac: no connection to pac.example; the last good copy is used"
            ])
        #expect(try await finder.hops("https://intra.example/") == ["direct"])
    }

    @Test func aBadScriptIsNotStored() async throws {
        let scene = Scene()
        scene.serve("<html>Sign in to the network</html>")
        let finder = try scene.finder(["pac:https://pac.example/proxy.pac"])
        await finder.load()
        #expect(scene.stored.withLock { $0 } == nil)
        await #expect(throws: ParentsError.self) { try await finder.hops("https://www.example/") }
    }

    @Test func withoutAnyHopTheErrorNamesTheScript() async throws {
        let scene = Scene()
        scene.serve("function FindProxyForURL(url, host) { return 'GOPHER a'; }")
        let finder = try scene.finder(["pac:/proxy.pac"])
        await finder.load()
        do {
            _ = try await finder.hops("https://www.example/")
            Issue.record("there is a hop")
        } catch let error as ParentsError {
            #expect(error.code == .noHop && error.detail.contains("/proxy.pac") && error.detail.contains("GOPHER"))
        }
        let other = try scene.finder(["pac:/proxy.pac", "direct"])
        await other.load()
        #expect(try await other.hops("https://www.example/") == ["direct"])
    }

    @Test func elementsThatAreSkippedAreLoggedOnce() async throws {
        let scene = Scene()
        scene.serve("function FindProxyForURL(url, host) { return 'HTTPS p:443; FOO x; DIRECT'; }")
        let finder = try scene.finder(["pac:/proxy.pac"])
        await finder.load()
        for host in ["a", "b"] {
            #expect(try await finder.hops("https://\(host).example/") == ["https://p:443", "direct"])
        }
        #expect(
            scene.logged.withLock { $0 } == [
                "--parent: the result of the script /proxy.pac contains \"FOO x\": "
                    + "expected PROXY, HTTPS, SOCKS, SOCKS5 or DIRECT; it is skipped"
            ])
    }

    /// The network may have changed; `load` is called then.
    @Test func aScriptThatAskedForAddressesIsRunAgain() async throws {
        let scene = Scene()
        let finder = try scene.finder(["pac:/proxy.pac"])
        for (own, second) in [("myIpAddress()", "c1"), ("null", "c2")] {
            scene.serve("var own = \(own), calls = 0; function FindProxyForURL() { return 'PROXY c' + ++calls; }")
            for name in ["c1", second] {
                await finder.load()
                #expect(try await finder.hops("https://a.example/") == ["http://\(name):80"])
            }
        }
    }

    @Test func aScriptIsReadAgainWhenItExpires() async throws {
        let scene = Scene()
        scene.serve(Self.choice, lifetime: .seconds(600))
        let finder = try scene.finder(["pac:https://pac.example/proxy.pac"])
        await finder.load()
        let (start, version) = (ContinuousClock.now, finder.version)
        await finder.keepFresh(at: start + .seconds(599))
        #expect(scene.readings.load(ordering: .relaxed) == 1)
        await finder.keepFresh(at: start + .seconds(601))
        #expect(scene.readings.load(ordering: .relaxed) == 2)
        #expect(finder.version == version, "the script is the same")
        scene.serve("function FindProxyForURL(url, host) { return 'DIRECT'; }")
        await finder.keepFresh(at: start + .seconds(1300))
        #expect(finder.version != version)
        #expect(try await finder.hops("https://www.example/") == ["direct"])
    }

    @Test func aFaultIsLoggedOnce() async throws {
        let scene = Scene()
        scene.serve(Self.choice)
        let finder = try scene.finder(["pac:https://pac.example/proxy.pac"])
        await finder.load()
        scene.fail("no connection to pac.example")
        for minutes in [11, 20, 30] { await finder.keepFresh(at: .now + .seconds(60 * minutes)) }
        #expect(scene.logged.withLock { $0.count } == 1)
        scene.serve(Self.choice)
        await finder.keepFresh(at: .now + .seconds(3600))
        scene.fail("no connection to pac.example")
        await finder.keepFresh(at: .now + .seconds(7200))
        #expect(scene.logged.withLock { $0.count } == 2)
    }

    @Test func aRecentAnswerEndsWithWhatItFollowsFrom() async throws {
        let scene = Scene()
        scene.serve("function FindProxyForURL(url, host) { return url.indexOf('/a') > 0 ? 'PROXY p:1' : 'PROXY q:2'; }")
        let finder = try scene.finder(["pac:/proxy.pac", "http://last.example:3"])
        await finder.load()
        for (url, first) in [("http://x.invalid/a", "http://p:1"), ("http://x.invalid/b", "http://q:2")] {
            let found = try await finder.hops(url)
            #expect(found == [first, "http://last.example:3"])
            for _ in 0..<2 { #expect(try finder.known(url) == found) }
        }
        finder.parentFailed(try proxy("p", 1))
        #expect(try finder.known("http://x.invalid/a") == ["http://last.example:3", "http://p:1"])
        finder.parentAnswered(try proxy("p", 1))
        #expect(try finder.known("http://x.invalid/a") == ["http://p:1", "http://last.example:3"])
        scene.serve("function FindProxyForURL(url, host) { return 'DIRECT'; }", lifetime: .seconds(600))
        await finder.keepFresh(at: .now + .seconds(700))
        #expect(try finder.known("http://x.invalid/a") == nil)
        #expect(try await finder.hops("http://x.invalid/a") == ["direct", "http://last.example:3"])
    }

    @Test func aDeadParentIsTriedLastUntilAProbeSucceeds() async throws {
        let scene = Scene()
        let finder = try scene.finder(["http://a.example:1", "http://b.example:2"])
        let dead = try proxy("a.example", 1)
        finder.parentFailed(dead)
        finder.parentFailed(dead)
        #expect(scene.logged.withLock { $0.count } == 1)
        #expect(try finder.known("https://www.example/") == ["http://b.example:2", "http://a.example:1"])
        await finder.keepFresh(at: .now + .seconds(61))
        #expect(try finder.known("https://www.example/") == ["http://b.example:2", "http://a.example:1"])
        scene.alive.withLock { $0 = [dead] }
        await finder.keepFresh(at: .now + .seconds(122))
        #expect(try finder.known("https://www.example/") == ["http://a.example:1", "http://b.example:2"])
    }

    @Test func aChangeOfTheNetworkRevivesParentsAndChangesTheVersion() throws {
        let finder = try Scene().finder(["http://a.example:1", "http://b.example:2"])
        finder.parentFailed(try proxy("a.example", 1))
        let version = finder.version
        finder.forgetNetwork()
        #expect(finder.version != version)
        #expect(try finder.known("https://www.example/") == ["http://a.example:1", "http://b.example:2"])
    }

    private static let responses: [(String?, Int64?, Int64)] = [
        ("max-age=900", nil, 900), ("public, max-age=10", nil, 300), ("max-age=9999999", nil, 86_400),
        ("no-store", nil, 300), (nil, 1_000_600, 600), (nil, 5, 300), (nil, nil, 3600), ("max-age=x", nil, 300),
        ("max-age=900", 1_000_600, 900),
    ]

    @Test(arguments: responses)
    func aResponseSaysHowLongItMayBeUsed(field: String?, expires: Int64?, seconds: Int64) {
        #expect(
            ScriptContents.lifetime(cacheControl: field, expires: expires, date: 1_000_000) == .seconds(seconds))
    }
}
