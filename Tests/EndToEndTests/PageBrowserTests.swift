// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The page of `countersign ui` in headless Chromium and Firefox. Clients/watch_page.py says what is done there.
@Suite(.waiting) struct PageBrowserTests {
    /// One visit for all tests: starting a browser takes longer than most checks.
    private final class Visit: Sendable {
        private static let made = Result { try Visit() }

        static var shared: Visit { get throws { try made.get() } }

        /// `ok NAME`, `failed NAME: REASON`, or a comment after `#`.
        let lines: [String]

        private init() throws {
            for program in ["chromium", "firefox-esr"] { _ = try Tool.path(program) }
            let origin = try ChallengingOrigin.acme(.basic)
            let untrusted = try ChallengingOrigin.acme(.basic, certificate: "server-self")
            let user = try Countersign()
            try user.enroll()
            let site = "https://seen.test.localhost:\(origin.port)"
            let printer = "https://printer.test.localhost:\(untrusted.port)"
            try user.allow(
                "\(site) answer=basic approve=write",
                "https://other.test.localhost:\(origin.port) answer=ntlm domain=ACME", "\(printer) answer=basic")
            let folder = try TemporaryFolder("page")
            let done = try Command.run(
                Tool.python(),
                [Tool.client("watch_page.py"), folder.path, try Countersign.executable, user.home, site, printer],
                in: folder, seconds: 900)
            lines = done.output.split(separator: "\n").map(String.init)
            guard done.status == 0, lines.last == "done" else { throw HarnessError("watch_page.py: \(done.said)") }
            try keepPictures(of: folder)
        }

        /// Copies the screenshots to the folder that COUNTERSIGN_SCREENSHOTS names, if it is set.
        private func keepPictures(of folder: TemporaryFolder) throws {
            guard let gallery = ProcessInfo.processInfo.environment["COUNTERSIGN_SCREENSHOTS"] else { return }
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasSuffix(".png") {
                try Data(TextFile.bytes(folder.file(name))).write(to: URL(fileURLWithPath: "\(gallery)/\(name)"))
            }
        }
    }

    @Test(arguments: [
        "opensByTheLink", "aUsedLinkDoesNotOpen", "showsARequestWithItsFailingCheck", "filters",
        "approvesByTheKeyboard", "allowsACertificate", "showsParentsAndRoutes", "hasNamesAndRoles",
        "hasNoFaultsOfAccessibility", "showsWhereTheFocusIs", "refusesAnotherHost", "forbidsWhatIsInjected",
        "tellsOtherOriginsNothing", "refusesAStaleSession", "forgetsReadersThatHaveGone", "reconnects",
        "survivesARestartInPlace", "saysThatANewServerNeedsANewLink", "showsHostileTextsAsTexts",
        "staysSmallInAFlood", "worksInFirefox",
    ])
    func thePage(check: String) throws {
        let lines = try Visit.shared.lines
        let line = lines.first { $0 == "ok \(check)" || $0.hasPrefix("failed \(check): ") }
        #expect(line == "ok \(check)", "\(lines.joined(separator: "\n"))")
    }
}
