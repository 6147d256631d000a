// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

/// `--parent`, `route` and `explain` with real parents.
@Suite struct RouteTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.home, withIntermediateDirectories: true)
    }

    private static func script(_ port: Int) -> String {
        """
        function FindProxyForURL(url, host) {
            if (host == "direct.corp.invalid") return "DIRECT";
            return "PROXY 127.0.0.1:\(port)";
        }
        """
    }

    @Test func aScriptFromAWebServerDecidesAndItsLastCopyIsKept() throws {
        let isGone = Atomic(false)
        let server = try StatusServer { _ in
            isGone.load(ordering: .relaxed) ? .status(503, fields: []) : .body(Array(Self.script(8080).utf8))
        }
        let parent = "pac:" + server.url("/proxy.pac")
        func route(_ url: String) throws -> CommandResult { try sandbox.countersign("route", "--parent", parent, url) }
        #expect(try route("https://www.corp.invalid").output == "http://127.0.0.1:8080\n")
        #expect(try route("http://direct.corp.invalid/x").output == "direct\n")
        #expect(server.requests.allSatisfy { $0.path == "/proxy.pac" })
        isGone.store(true, ordering: .relaxed)
        let later = try route("https://www.corp.invalid")
        #expect(later.status == 0 && later.output == "http://127.0.0.1:8080\n")
        #expect(later.said.contains("was answered with status 503; the last good copy is used"), "\(later.said)")
        let other = try sandbox.countersign("route", "--parent", "pac:" + server.url("/other"), "www.corp.invalid")
        #expect(other.status == 1 && other.said.contains("--parent: no next hop"), "\(other.said)")
    }

    @Test func aRunningServerSaysWhatItDoes() throws {
        let parent = try SquidParent(.none)
        let origin = try StatusServer { _ in .body(Array("hello".utf8)) }
        let script = try sandbox.folder.write("proxy.pac", Self.script(parent.port))
        let server = try sandbox.serve("--parent", "pac:\(script)")
        let address = try server.line(after: "countersign: listening on ")
        let reply = try sandbox.sh("curl -sS --proxy http://\(address) \(origin.url("/a"))")
        #expect(reply.output == "hello", "\(reply.said)")
        #expect(parent.logged("GET").count == 1)
        #expect(try sandbox.succeed("route", "www.corp.invalid") == "http://127.0.0.1:\(parent.port)\n")
        #expect(try sandbox.succeed("route", "direct.corp.invalid") == "direct\n")
        #expect(try sandbox.succeed("route", "--parent", "direct", "www.corp.invalid") == "direct\n")
        let line = "route        http://127.0.0.1:\(parent.port) (script \(script))"
        #expect(try sandbox.succeed("explain", "www.corp.invalid").contains(line))
        let json = try sandbox.succeed("explain", "--json", "www.corp.invalid")
        #expect(json.contains("\"hop\" : \"http://127.0.0.1:\(parent.port)\""), "\(json)")
    }

    @Test func withoutASettingExplainIsSilentAndRouteIsDirect() throws {
        #expect(try sandbox.succeed("route", "www.corp.invalid") == "direct\n")
        #expect(try sandbox.succeed("route", "--json", "www.corp.invalid").contains("no parent is set"))
        #expect(try !sandbox.succeed("explain", "www.corp.invalid").contains("route"))
    }

    @Test func anEnrolmentGoesThroughTheParentOfTheVariable() throws {
        let parent = try SquidParent(.none)
        let place = try EnrolledSandbox(environment: ["COUNTERSIGN_PARENT": "http://127.0.0.1:\(parent.port)"])
        let enrolled = try place.enroll()
        #expect(enrolled.status == 0, "\(enrolled.said)")
        let target = place.server.address().dropFirst("https://".count)
        let logged = parent.logged("CONNECT")
        #expect(!logged.isEmpty && logged.allSatisfy { $0 == "200 \(target) -" }, "\(logged)")
        parent.stop()
        let failed = try place.enroll(name: "other")
        #expect(
            failed.status == 1 && failed.said.contains("no connection to the parent http://127.0.0.1:\(parent.port)"),
            "\(failed.said)")
    }
}
