// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import CountersignTestOrigin
import Foundation
import Testing

/// The code of the article "Show a page in a web view". The program with the view is `WebView/Sources/webpage`.
struct ShowAPageInAWebViewCode {
    // MARK: The article

    private func viewer(_ program: String, showing page: URL, through proxy: ChallengeProxy) async throws -> Process {
        let address = try await proxy.address
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/bwrap")
        process.arguments = [
            "--die-with-parent", "--dev-bind", "/", "/",
            "--ro-bind", proxy.trustBundlePath, "/etc/ssl/certs/ca-certificates.crt",
            "--", program, "\(address)", page.absoluteString,
        ]
        return process
    }

    // MARK: Tests

    @Test func aPageOfAListedSiteIsShownWithoutAQuestion() async throws {
        let origin = try ChallengingOrigin(.ntlm, user: "ACME\\\(LibraryHome.user)", password: LibraryHome.password)
        try Data("<!doctype html><title>The intranet</title>".utf8)
            .write(to: URL(fileURLWithPath: "\(origin.root)/index.html"))
        let page = "https://page.test.localhost:\(origin.port)/index.html"
        let home = try LibraryHome(
            "\(page.dropLast("/index.html".count)) answer=ntlm domain=ACME\n",
            anchors: [try TestPKI.shared.originAnchor])
        let display = try VirtualDisplay()
        let folder = try TemporaryFolder("viewer")
        let proxy = ChallengeProxy(try home.controller())
        let running = Task { try await proxy.run() }
        let viewer = try await viewer(Tool.webPage(), showing: #require(URL(string: page)), through: proxy)
        viewer.environment = try display.windowEnvironment.merging([
            "HOME": folder.path, "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": folder.path,
        ]) { $1 }
        let output = URL(fileURLWithPath: try folder.write("output", ""))
        viewer.standardOutput = try FileHandle(forWritingTo: output)
        try viewer.run()
        let isShown = try await eventually { TextFile.text(output.path) == "title: The intranet\n" }
        // Foundation starts processes with SIGTERM blocked.
        kill(viewer.processIdentifier, SIGKILL)
        viewer.waitUntilExit()
        #expect(isShown, "\(TextFile.text(output.path))")
        #expect(origin.log.requests(path: "/index.html").last?.user == "ACME\\\(LibraryHome.user)")
        running.cancel()
        try await running.value
        withExtendedLifetime(display) {}
    }
}
