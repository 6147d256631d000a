// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import WebViewProtocol

extension WebView {
    struct LifecycleTests {
        let server = PageServer.shared

        @Test func cancellingReportsNoCookies() throws {
            let view = try WebViewProcess.open("/") {
                $0.captureCookies = CookieSelection(host: "127.0.0.1", names: ["SID"])
            }
            try view.loaded()
            view.send(.cancel)
            view.ended(.cancel)
            #expect(!view.events.contains { if case .cookies = $0 { true } else { false } })
        }

        @Test func cancellingWorksBeforeTheWindowIsOpen() throws {
            let view = try WebViewProcess()
            view.send(.cancel)
            view.ended(.cancel)
        }

        @Test func theEndOfInputEndsIt() throws {
            let view = try WebViewProcess.open("/")
            try view.loaded()
            view.process.closeInput()
            view.ended(.inputEnded)
        }

        @Test func thePersonClosesTheWindow() throws {
            let title = "Close \(UUID().uuidString)"
            let view = try WebViewProcess.open("/cookies") {
                $0.title = title
                $0.captureCookies = CookieSelection(host: "127.0.0.1", names: ["SID"])
            }
            try view.loaded()
            let closer = try LineProcess("/usr/bin/env", ["python3", PageServer.script("close_window.py"), title])
            #expect(closer.exitStatus() == 0, "\(closer.standardError)")
            view.ended(.window)
            #expect(view.events.contains { if case .cookies = $0 { true } else { false } })
        }

        @Test func thePageClosesTheWindow() throws {
            try WebViewProcess.open("/close").ended(.page)
        }

        @Test func theTimeLimitEndsIt() throws {
            try WebViewProcess.open("/") { $0.timeLimit = .seconds(1) }.ended(.timeLimit)
        }

        @Test(arguments: [["--test"], ["--ca-bundle", "/etc/ssl/certs/ca-certificates.crt", "--test"]])
        func nothingRemainsWhenItIsKilled(arguments: [String]) throws {
            let view = try WebViewProcess.open("/", arguments: arguments)
            try view.loaded()
            let processes = view.descendants
            #expect(processes.count >= 3)
            view.process.kill()
            let deadline = Date(timeIntervalSinceNow: 60)
            while processes.contains(where: Self.isRunning), Date() < deadline { usleep(20_000) }
            #expect(!processes.contains(where: Self.isRunning))
        }

        /// On a display of its own: GLib starts one bus for each.
        @Test func noBusRemains() throws {
            let server = try LineProcess("/usr/bin/env", ["Xvfb", "-displayfd", "1", "-nolisten", "tcp"])
            defer { server.kill() }
            let display = ":" + (try #require(server.first { $0 }))
            // A bus that another program has left behind may have the same display.
            let mark = (name: "COUNTERSIGN_TEST_MARK", value: UUID().uuidString)
            let view = try WebViewProcess(
                environment: [
                    "DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": "", mark.name: mark.value,
                ])
            view.send(.open(WebViewProcess.request("/")))
            try view.loaded()
            let variable = "\(mark.name)=\(mark.value)"
            #expect(!Self.programs(with: variable).isEmpty)
            view.close()
            let deadline = Date(timeIntervalSinceNow: 20)
            while !Self.programs(with: variable).isEmpty, Date() < deadline { usleep(50_000) }
            #expect(Self.programs(with: variable) == [])
        }

        /// The command lines of the running programs that have inherited a variable.
        private static func programs(with variable: String) -> [String] {
            let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return processes.filter { Int($0) != nil }.compactMap { process in
                guard let variables = FileManager.default.contents(atPath: "/proc/\(process)/environ"),
                    variables.split(separator: 0).contains(Data(variable.utf8))
                else { return nil }
                let words = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()
                return String(decoding: words, as: UTF8.self).replacing("\0", with: " ")
            }
        }

        private static func isRunning(_ id: pid_t) -> Bool {
            guard let stat = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8) else { return false }
            return !stat.contains(") Z ")
        }

        /// Even if the Swift runtime is set to print a backtrace.
        @Test(
            arguments: [[:], ["SWIFT_BACKTRACE": "enable=yes"]], [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV])
        func aFaultEndsIt(environment: [String: String], signal: Int32) throws {
            let view = try WebViewProcess(environment: environment)
            try view.event { if case .ready = $0 { () } else { nil } }
            kill(view.process.processID, signal)
            #expect(view.process.exitStatus() == -signal)
            #expect(view.process.standardError == "")
        }

        @Test func theEndOfThePagesProcessIsAFailure() throws {
            let view = try WebViewProcess.open("/")
            try view.loaded()
            let processes = view.descendants.filter {
                (try? String(contentsOfFile: "/proc/\($0)/comm", encoding: .utf8))?.hasPrefix("WebKitWebProces")
                    ?? false
            }
            #expect(processes.count == 1)
            for process in processes { Glibc.kill(process, SIGKILL) }
            #expect(try view.failed() == .webProcess)
        }

        @Test func withoutADisplayItSaysSo() throws {
            let view = try WebViewProcess(environment: ["DISPLAY": "", "WAYLAND_DISPLAY": ""])
            #expect(try view.failed() == .noDisplay)
        }

        @Test func withoutBubblewrapItSaysSo() throws {
            let view = try WebViewProcess(environment: ["PATH": "/nonexistent"])
            #expect(try view.failed() == .noBubblewrap)
        }

        @Test func withoutUserNamespacesItSaysSo() throws {
            let folder = server.folder + "/path-\(UUID().uuidString)"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(
                atPath: folder + "/bwrap", withDestinationPath: "/bin/false")
            let view = try WebViewProcess(environment: ["PATH": folder])
            #expect(try view.failed() == .noUserNamespaces)
        }

        @Test func aBundleThatIsMissingIsAFailure() throws {
            #expect(try WebViewProcess(["--ca-bundle", "/nonexistent.pem"]).failed() == .noCABundle)
        }

        @Test(arguments: [
            "{", "text", "{\"type\":\"other\"}", "{\"type\":\"close\",\"a\":1}",
            "{\"type\":\"load\",\"url\":\"https://a/\"}",
            "{\"type\":\"snapshot\",\"file\":\"/nonexistent\"}", "{\"type\":\"pressButton\"}",
            String(repeating: " ", count: Limits.lineBytes) + "{\"type\":\"close\"}",
        ])
        func aLineThatIsNoCommandIsAFailure(line: String) throws {
            let view = try WebViewProcess()
            view.process.write(Array((line + "\n").utf8))
            #expect(try view.failed() == .protocolError)
        }

        @Test func aSecondOpenIsAFailure() throws {
            let view = try WebViewProcess.open("/")
            try view.loaded()
            view.send(
                .open(
                    OpenRequest(
                        url: "https://a.example/", redirectURIs: [], allowedOrigins: ["https://a.example"],
                        timeLimit: .seconds(1))))
            #expect(try view.failed() == .protocolError)
        }

        @Test func plainHTTPNeedsAnArgument() throws {
            #expect(try WebViewProcess.open("/", arguments: []).failed() == .protocolError)
            let view = try WebViewProcess.open("/", arguments: ["--loopback-http"])
            try view.loaded()
            view.close()
        }

        @Test func wrongArgumentsAreWrongUse() throws {
            let view = try WebViewProcess(["--other"])
            #expect(view.process.exitStatus() == 2)
            #expect(view.process.standardError.contains("unknown argument '--other'"))
        }

        @Test func aSnapshotShowsThePage() throws {
            let view = try WebViewProcess.open("/red")
            try view.loaded()
            let file = server.folder + "/red-\(UUID().uuidString).png"
            view.send(.snapshot(file: file))
            try view.waitFor(.snapshot(file: file))
            view.close()
            let script = """
                import struct, sys, zlib
                data, at, body = open(sys.argv[1], "rb").read(), 8, b""
                while at < len(data):
                    size, kind = struct.unpack(">I4s", data[at:at + 8])
                    body += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
                    at += size + 12
                print(list(zlib.decompress(body)[1:4]))
                """
            let reader = try LineProcess("/usr/bin/env", ["python3", "-c", script, file])
            #expect(reader.exitStatus() == 0)
            #expect(reader.allLines == ["[255, 0, 0]"])
        }
    }
}
