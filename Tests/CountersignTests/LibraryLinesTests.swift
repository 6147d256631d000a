// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

@testable import Countersign

/// Sites whose lines are for different requests, in the library.
@Suite(.waiting) struct LibraryLinesTests {
    private static let url = "https://git.corp.example/issues"
    private static let sites = """
        https://git.corp.example methods=GET answer=negotiate,basic credential=reader
        https://git.corp.example methods=POST answer=basic credential=writer

        """

    private static func home() throws -> LibraryHome {
        try LibraryHome(
            sites,
            credentials: ["reader": ("jdoe", LibraryHome.password), "writer": ("editor", LibraryHome.password)])
    }

    @Test func theOfferIsComparedWithTheLineOfTheRequest() throws {
        let controller = try Self.home().controller()
        func offered(_ method: String) -> Bool {
            controller.newPermit(method: method, url: Self.url, offer: "Negotiate, Basic realm=\"git\"").offered
                == controller.newPermit(method: method, url: Self.url, offer: "Basic realm=\"git\"").offered
        }
        // Only the first line permits Negotiate.
        #expect(!offered("GET"))
        #expect(offered("POST"))
    }

    @Test func aRejectionNamesTheLineOfTheRequest() async throws {
        let home = try Self.home()
        let controller = try home.controller()
        let permit = controller.newPermit(method: "POST", url: Self.url)
        let space = ProtectionSpace.git(.basic)
        func challenge(failures: Int) -> AuthenticationChallenge {
            var challenge = AuthenticationChallenge(protectionSpace: space, previousFailureCount: failures)
            challenge.permit = permit
            return challenge
        }
        let given = await controller.handle(challenge(failures: 0))
        #expect(given.1 == .password(user: "editor", Password(LibraryHome.password)))
        let events = controller.events
        _ = await controller.handle(challenge(failures: 1))
        let told = await controller.told(events)
        guard case .handedBack(_, let error)? = told.last else {
            Issue.record("\(told)")
            return
        }
        #expect(error?.listLine == "AllowedSites/test.sites:2")
        #expect(
            error?.hint?.contains("`countersign credential set writer --user editor`") == true,
            "\(String(describing: error))")
    }
}
