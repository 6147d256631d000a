// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Requests that would come back to the proxy.
@Suite(.waiting) struct LoopTests {
    private let user: Countersign

    init() throws { user = try Countersign() }

    private func serve(_ port: Int, _ flags: String..., for user: Countersign) throws -> ChildProcess {
        let process = try ChildProcess(
            try Countersign.executable, ["serve", "--listen", "127.0.0.1:\(port)", "--home", user.home] + flags,
            environment: user.environment, capture: user.folder.file("serve-\(port)"))
        _ = try process.line(after: "countersign: listening on 127.0.0.1:")
        return process
    }

    /// curl's output for a request through the proxy on that port, with the heads.
    private func curl(_ port: Int, _ url: String) throws -> String {
        try Command.run(
            try Tool.path("curl"), ["-q", "-sSkv", "-m", "30", "-x", "http://127.0.0.1:\(port)", url], in: user.folder
        ).said
    }

    private static let detected = "< Proxy-Status: countersign; error=proxy_loop_detected; details="

    @Test(arguments: ["localhost", "127.0.0.1", "parent.test.localhost"])
    func aParentThatIsThisProxyIsALoop(name: String) throws {
        let port = try Loopback.freePorts(1)[0]
        let process = try serve(port, "--parent", "http://\(name):\(port)", for: user)
        defer { process.stop() }
        for url in ["http://www.corp.invalid/", "https://www.corp.invalid/"] {
            let said = try curl(port, url)
            #expect(said.contains("< HTTP/1.1 508 Loop Detected") && said.contains(Self.detected), "\(said)")
            #expect(said.contains("\(name):\(port) is this proxy itself, so requests would loop"), "\(said)")
        }
    }

    /// The hosts file gives the parent another name, which its spelling does not reveal.
    @Test func aParentWhoseNameLeadsHereIsALoop() throws {
        let hosts = try user.folder.write("hosts", "127.0.0.1 localhost proxy.corp.invalid\n")
        let port = try Loopback.freePorts(1)[0]
        let process = try ChildProcess(
            try Tool.path("unshare"),
            ["-rm", "sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\"", hosts, try Countersign.executable]
                + ["serve", "--listen", "127.0.0.1:\(port)", "--home", user.home]
                + ["--parent", "http://proxy.corp.invalid:\(port)"],
            environment: user.environment, capture: user.folder.file("named"))
        defer { process.stop() }
        _ = try process.line(after: "countersign: listening on 127.0.0.1:")
        for url in ["http://www.corp.invalid/", "https://www.corp.invalid/"] {
            let said = try curl(port, url)
            #expect(said.contains("< HTTP/1.1 508 Loop Detected") && said.contains(Self.detected), "\(said)")
        }
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd")
        #expect(descriptors.count < 64, "\(descriptors.count) descriptors are open")
    }

    @Test(arguments: ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"])
    func anOriginThatIsThisProxyIsALoop(host: String) throws {
        let proxy = try user.serve()
        for scheme in ["http", "https"] {
            let said = try curl(proxy.port, "\(scheme)://\(host):\(proxy.port)/")
            #expect(said.contains("< HTTP/1.1 508 Loop Detected") && said.contains(Self.detected), "\(said)")
        }
    }

    /// Each would send the request to the other without end.
    @Test func twoProxiesThatAreEachOthersParentsEndInOne508() throws {
        let other = try Countersign()
        // A listed site, too: each proxy opens a connection of its own for it.
        for user in [user, other] { try user.allow("https://listed.corp.invalid") }
        let ports = try Loopback.freePorts(2)
        let first = try serve(ports[0], "--parent", "http://127.0.0.1:\(ports[1])", for: user)
        defer { first.stop() }
        let second = try serve(ports[1], "--parent", "http://127.0.0.1:\(ports[0])", for: other)
        defer { second.stop() }
        for url in ["http://www.corp.invalid/", "https://www.corp.invalid/", "https://listed.corp.invalid/"] {
            for port in ports {
                let said = try curl(port, url)
                #expect(said.components(separatedBy: "< HTTP/1.1 508 Loop Detected").count == 2, "\(said)")
                #expect(said.contains(Self.detected), "\(said)")
            }
        }
        for process in [first, second] {
            let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd")
            #expect(descriptors.count < 64, "\(descriptors.count) descriptors are open")
        }
    }
}
