// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

struct LoadProgressTests {
    @Test func aFailedLoadIsOneEvent() {
        var progress = LoadProgress()
        #expect(progress.started(url: "a") == .loadStarted(url: "a"))
        #expect(
            progress.failed(url: "a", code: .network, message: "m")
                == .loadFailed(url: "a", code: .network, message: "m"))
        #expect(progress.finished(url: "a") == nil)
        #expect(progress.started(url: "a") == .loadStarted(url: "a"))
        #expect(progress.finished(url: "a") == .loadFinished(url: "a"))
    }

    @Test func aResponseIsAwaitedUntilThePageIsShownOrTheLoadEnds() {
        let ends: [(inout LoadProgress) -> Void] = [
            { $0.committed() }, { _ = $0.finished(url: "a") },
            { _ = $0.failed(url: "a", code: .network, message: "m") },
        ]
        for end in ends {
            var progress = LoadProgress()
            #expect(!progress.awaitsResponse)
            _ = progress.started(url: "a")
            #expect(progress.awaitsResponse)
            end(&progress)
            #expect(!progress.awaitsResponse)
        }
    }

    @Test func aCancelledLoadIsNoEvent() {
        var progress = LoadProgress()
        _ = progress.started(url: "a")
        #expect(progress.failed(url: "a", code: nil, message: "") == nil)
        #expect(progress.finished(url: "a") == nil)
        #expect(progress.started(url: "b") == .loadStarted(url: "b"))
    }

    @Test func anotherPageAfterAFailureIsReported() {
        var progress = LoadProgress()
        _ = progress.started(url: "a")
        _ = progress.failed(url: "a", code: .network, message: "m")
        #expect(progress.started(url: "b") == .loadStarted(url: "b"))
        #expect(progress.finished(url: "b") == .loadFinished(url: "b"))
    }
}
