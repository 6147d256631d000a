// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WebViewProtocol

extension WebView {
    struct SessionTests {
        let server = PageServer.shared

        static func cookie(_ name: String, _ value: String, expires: Int64? = nil) -> Cookie {
            Cookie(
                name: name, value: value, domain: "127.0.0.1", expires: expires, secure: false, httpOnly: true,
                sameSite: .lax)
        }

        @Test func storedCookiesGoWithTheFirstRequest() throws {
            let mark = server.mark
            let view = try WebViewProcess.open("/") {
                $0.cookies = [
                    Self.cookie("a", "secret-a"), Self.cookie("b", "secret-b", expires: 4_000_000_000),
                    Self.cookie("c", "old", expires: 1),
                ]
            }
            try view.loaded()
            view.close()
            let fields = server.requests(since: mark).first?.cookie?.components(separatedBy: "; ").sorted()
            #expect(fields == ["a=secret-a", "b=secret-b"])
        }

        @Test func theNamedCookiesAreReported() throws {
            let view = try WebViewProcess.open("/cookies") {
                $0.captureCookies = CookieSelection(host: "127.0.0.1", names: ["SID", "KEY", "NONE"])
            }
            let cookies = try view.event { if case .cookies(let cookies) = $0 { cookies } else { nil } }
            #expect(cookies.map(\.name) == ["KEY", "SID"])
            #expect(cookies.map(\.value) == ["secret-2", "secret-1"])
            #expect(cookies.map(\.httpOnly) == [false, true])
            #expect(cookies.map(\.domain) == ["127.0.0.1", "127.0.0.1"])
            let expires = try #require(cookies.first?.expires) - Int64(Date().timeIntervalSince1970)
            #expect((0...1000).contains(expires))
            #expect(cookies.last?.expires == nil)
            view.close()
            #expect(view.events.suffix(2) == [.cookies(cookies), .closed(.close)])
        }

        @Test func aSessionIsReportedAndTakenUpByAnotherWindow() throws {
            let first = try WebViewProcess.open("/cookies")
            try first.loaded()
            first.send(.reportSession)
            let cookies = try first.event { if case .session(let cookies, 0) = $0 { cookies } else { nil } }
            #expect(cookies.map(\.name).contains("SID"))
            let mark = server.mark
            let second = try WebViewProcess.open("/") {
                $0.cookies = cookies
                $0.reportsSession = true
            }
            try second.loaded()
            second.close()
            #expect(server.requests(since: mark).first?.cookie?.contains("SID=secret-1") == true)
            #expect(second.events.suffix(2) == [.session(cookies, omitted: 0), .closed(.close)])
            first.close()
        }

        /// The page that is loaded right after has the new cookie, and not the one that has expired.
        @Test func addedCookiesGoWithTheNextPage() throws {
            let view = try WebViewProcess.open("/") { $0.cookies = [Self.cookie("a", "1"), Self.cookie("b", "2")] }
            try view.loaded()
            let mark = server.mark
            // As many as fit, so that storing them takes longer than the page's request.
            let many = (10..<70).map { Self.cookie("n\($0)", "1") }
            view.send(.addCookies([Self.cookie("a", "", expires: 1)] + many + [Self.cookie("c", "3")]))
            view.send(.load(PageRequest(url: server.first + "/next")))
            try view.loaded(server.first + "/next")
            view.close()
            let fields = server.requests(since: mark).first?.cookie?.components(separatedBy: "; ").sorted()
            #expect(fields == ["b=2", "c=3"] + many.map { "\($0.name)=1" })
        }

        @Test func aPrivateSessionForgets() throws {
            try WebViewProcess.open("/cookies").finishAfterLoading()
            let mark = server.mark
            try WebViewProcess.open("/").finishAfterLoading()
            #expect(server.requests(since: mark).map(\.cookie) == [nil])
        }

        @Test func aDataFolderKeepsPersistentCookies() throws {
            let folder = server.folder + "/data-\(UUID().uuidString)"
            try WebViewProcess.open("/cookies") { $0.dataFolder = folder }.finishAfterLoading()
            let mode = try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions] as? Int
            #expect(mode == 0o700)
            let mark = server.mark
            try WebViewProcess.open("/") { $0.dataFolder = folder }.finishAfterLoading()
            #expect(server.requests(since: mark).map(\.cookie) == ["KEY=secret-2"])
        }

        @Test func aDataFolderThatOthersCanReadIsRefused() throws {
            let folder = server.folder + "/open-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
            let view = try WebViewProcess.open("/") { $0.dataFolder = folder }
            #expect(try view.failed() == .dataFolder)
        }

        private func openSecure(
            _ path: String = "/parts", arguments: [String], token: String = "secret-token"
        ) throws -> WebViewProcess {
            try WebViewProcess.open("/", arguments: arguments) {
                $0.url = "https://login.test" + path
                $0.allowedOrigins = ["https://login.test", "https://other.test"]
                $0.proxy = "http://webview:\(token)@127.0.0.1:\(PageServer.shared.proxyPort)"
            }
        }

        @Test func everythingGoesThroughTheProxyWithTheToken() throws {
            let mark = server.mark
            let view = try openSecure(arguments: ["--ca-bundle", server.folder + "/bundle.pem"])
            try view.loaded("https://login.test/parts")
            _ = try #require(server.request(since: mark) { $0.path == "/fetched" })
            view.close()
            let requests = server.requests(since: mark)
            #expect(
                Set(requests.filter { $0.origin == "secure" }.map(\.path)) == [
                    "/parts", "/a.png", "/frame", "/fetched",
                ])
            let tunnels = requests.filter { $0.authorized == true }.map(\.path)
            #expect(Set(tunnels) == ["login.test:443", "images.test:443", "other.test:443"])
            #expect(!requests.contains { $0.authorized == false })
            #expect(requests.allSatisfy { $0.proxyAuthorization == nil })
        }

        @Test func anOriginThatAsksForTheProxysTokenDoesNotReceiveIt() throws {
            let mark = server.mark
            let view = try openSecure(arguments: ["--ca-bundle", server.folder + "/bundle.pem"])
            try view.loaded("https://login.test/parts")
            view.send(.load(PageRequest(url: "https://login.test/407")))
            try view.event {
                switch $0 {
                case .loadFailed("https://login.test/407", _, _), .loadFinished("https://login.test/407"): ()
                default: nil
                }
            }
            view.close()
            let requests = server.requests(since: mark).filter { $0.origin == "secure" }
            #expect(requests.contains { $0.path == "/407" })
            #expect(requests.allSatisfy { $0.proxyAuthorization == nil })
        }

        @Test func loopbackGoesThroughTheProxy() throws {
            let mark = server.mark
            let view = try WebViewProcess.open("/", arguments: ["--ca-bundle", server.folder + "/bundle.pem"]) {
                $0.url = "https://localhost:\(PageServer.shared.securePort)/"
                $0.allowedOrigins = ["https://localhost:\(PageServer.shared.securePort)"]
                $0.proxy = "http://webview:secret-token@127.0.0.1:\(PageServer.shared.proxyPort)"
            }
            try view.loaded()
            view.close()
            #expect(server.requests(since: mark).contains { $0.authorized == true })
        }

        @Test func aProxyThatRefusesTheTokenIsAFailedLoad() throws {
            let view = try openSecure(arguments: [], token: "secret-wrong")
            try view.event { if case .loadFailed("https://login.test/parts", .stopped, _) = $0 { () } else { nil } }
            view.close()
        }

        @Test func theRelayServesOnlyWebKit() throws {
            let mark = server.mark
            let view = try openSecure(arguments: ["--ca-bundle", server.folder + "/bundle.pem"])
            try view.loaded("https://login.test/parts")
            _ = try #require(server.request(since: mark) { $0.path == "/fetched" })
            let count = server.requests(since: mark).filter { $0.origin == "proxy" }.count
            let script = """
                import os, socket, sys
                own = set()
                for folder in [f"/proc/{process}/fd/" for process in sys.argv[1:]]:
                    for name in os.listdir(folder):
                        try:
                            own.add(os.readlink(folder + name))
                        except FileNotFoundError:
                            pass
                rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
                for port in {int(row[1][9:], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}:
                    client = socket.create_connection(("127.0.0.1", port))
                    client.settimeout(60)
                    client.sendall(b"CONNECT login.test:443 HTTP/1.1\\r\\n\\r\\n")
                    try:
                        print(client.recv(100))
                    except OSError:
                        print(b"")
                """
            let processes = [view.process.processID] + view.descendants
            let other = try LineProcess("/usr/bin/env", ["python3", "-c", script] + processes.map(String.init))
            #expect(other.exitStatus() == 0, "\(other.standardError)")
            #expect(other.allLines == ["b''"])
            view.close()
            #expect(server.requests(since: mark).filter { $0.origin == "proxy" }.count == count)
        }

        @Test func aCertificateOfAnUnknownAuthorityIsRefused() throws {
            let mark = server.mark
            let view = try openSecure(arguments: [])
            try view.event { if case .loadFailed("https://login.test/parts", .certificate, _) = $0 { () } else { nil } }
            view.close()
            #expect(!server.requests(since: mark).contains { $0.origin == "secure" })
        }
    }
}

extension WebViewProcess {
    func finishAfterLoading(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try loaded(sourceLocation: sourceLocation)
        close(sourceLocation: sourceLocation)
    }
}
