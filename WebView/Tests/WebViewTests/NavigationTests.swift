// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WebViewProtocol

extension WebView {
    struct NavigationTests {
        let server = PageServer.shared

        static let ways = ["click", "blank", "script", "meta", "post", "form", "open", "302"]

        static func path(_ how: String, to url: String) -> String {
            how == "302" ? "/302?to=\(url.encoded)" : "/go?how=\(how)&to=\(url.encoded)"
        }

        @Test(arguments: ways, ["com.example.app:/cb?code=secret&state=1", "https://app.example/cb?code=secret#x"])
        func theRedirectIsReportedAndNotLoaded(how: String, redirect: String) throws {
            let view = try WebViewProcess.open(Self.path(how, to: redirect))
            #expect(try view.redirect() == redirect)
            view.close()
        }

        @Test(arguments: ["click", "script", "meta", "post", "form", "302"])
        func aQuestionForTheDeviceIsReported(how: String) throws {
            let url = "urn:http-auth:PKeyAuth?nonce=n&SubmitUrl=https%3A%2F%2Flogin.example%2F"
            let view = try WebViewProcess.open(Self.path(how, to: url))
            #expect(try view.event { if case .deviceChallenge(let url) = $0 { url } else { nil } } == url)
            view.close()
        }

        @Test(arguments: ["click", "script", "302", "post"])
        func anotherOriginIsRefused(how: String) throws {
            let mark = server.mark
            let view = try WebViewProcess.open(Self.path(how, to: server.second + "/page?code=secret"))
            #expect(try view.refusal() == .navigationRefused(url: server.second + "/page", why: .insecure))
            view.close()
            #expect(server.requests(since: mark).allSatisfy { $0.origin == "first" })
        }

        @Test func aWindowIsRefused() throws {
            let view = try WebViewProcess.open(Self.path("open", to: server.first + "/"))
            #expect(try view.refusal() == .navigationRefused(url: server.first + "/", why: .newWindow))
            view.close()
        }

        @Test(arguments: ["script", "302", "form"])
        func aFrameCannotReachTheRedirectURI(how: String) throws {
            let frame = Self.path(how, to: "com.example.app:/cb?frame")
            let then = "com.example.app:/cb?main"
            let view = try WebViewProcess.open("/frame?src=\(frame.encoded)&then=\(then.encoded)")
            #expect(try view.redirect() == then)
            view.close()
        }

        @Test func aFrameOfAnotherOriginIsNotLoaded() throws {
            let mark = server.mark
            let then = "com.example.app:/cb?main"
            let view = try WebViewProcess.open(
                "/frame?src=\((server.second + "/").encoded)&then=\(then.encoded)")
            #expect(try view.redirect() == then)
            view.close()
            #expect(server.requests(since: mark).allSatisfy { $0.origin == "first" })
        }

        @Test func aFrameOfAnAllowedOriginIsLoaded() throws {
            let mark = server.mark
            let then = "com.example.app:/cb?main"
            let view = try WebViewProcess.open(
                "/frame?src=\((server.second + "/").encoded)&then=\(then.encoded)"
            ) { $0.allowedOrigins.append(PageServer.shared.second) }
            #expect(try view.redirect() == then)
            view.close()
            #expect(server.requests(since: mark).map(\.origin) == ["first", "second"])
        }

        @Test(arguments: ["/attachment", "/profile"])
        func aDownloadIsRefused(path: String) throws {
            let view = try WebViewProcess.open(path)
            #expect(try view.refusal() == .navigationRefused(url: server.first + path, why: .download))
            view.close()
        }

        @Test(arguments: ways)
        func aSpecialURLIsReportedIfEnabled(how: String) throws {
            let url = "msauth://enroll?cpurl=secret"
            let view = try WebViewProcess.open(Self.path(how, to: url)) { $0.specialURLs = true }
            try view.waitFor(.specialURL(url: url))
            view.close()
        }

        @Test(arguments: ["openid-vc://wallet?x=1", "companyportal://enrollment", "browser://help.example/"])
        func eachOfTheSchemesIsReported(url: String) throws {
            let view = try WebViewProcess.open(Self.path("302", to: url)) { $0.specialURLs = true }
            try view.waitFor(.specialURL(url: url))
            view.close()
        }

        @Test func aProfileIsDeliveredIfEnabled() throws {
            let folder = server.folder + "/profiles-\(UUID().uuidString)"
            let view = try WebViewProcess.open("/profile") { $0.profileFolder = folder }
            try view.waitFor(.profile(url: server.first + "/profile", content: "eA=="))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
            view.send(.showMessage("The profile was installed."))
            view.close()
        }

        /// Profiles are enabled, and other files are not.
        @Test func anotherDownloadIsRefused() throws {
            let folder = server.folder + "/profiles-\(UUID().uuidString)"
            let view = try WebViewProcess.open("/attachment") { $0.profileFolder = folder }
            #expect(try view.refusal() == .navigationRefused(url: server.first + "/attachment", why: .download))
            view.close()
        }

        @Test func aSpecialURLIsRefusedOtherwise() throws {
            let view = try WebViewProcess.open(Self.path("302", to: "msauth://enroll?cpurl=secret"))
            #expect(try view.refusal() == .navigationRefused(url: "msauth://enroll", why: .specialURL))
            view.close()
        }

        @Test func theCallerCanLoadAnotherPageAfterTheRedirect() throws {
            let view = try WebViewProcess.open(Self.path("302", to: "com.example.app:/cb?code=secret"))
            _ = try view.redirect()
            view.send(.load(PageRequest(url: server.first + "/")))
            try view.loaded(server.first + "/")
            view.close()
        }

        @Test func aFailedLoadIsReportedOnce() throws {
            let view = try WebViewProcess.open("/") { $0.allowedOrigins.append(PageServer.shared.silent) }
            try view.loaded()
            let url = server.silent + "/"
            view.send(.load(PageRequest(url: url)))
            try view.event { if case .loadFailed(url, .network, _) = $0 { () } else { nil } }
            view.send(.load(PageRequest(url: server.first + "/red")))
            try view.loaded(server.first + "/red")
            view.close()
            #expect(!view.events.contains(.loadFinished(url: url)))
        }

        @Test func fieldsGoToTheFirstOriginOnly() throws {
            let mark = server.mark
            let path = Self.path("302", to: server.second + "/")
            let view = try WebViewProcess.open(path) {
                $0.allowedOrigins.append(PageServer.shared.second)
                $0.headers = ["X-Token": "secret"]
                $0.userAgent = "Agent/1"
            }
            try view.loaded(server.second + "/")
            view.close()
            let requests = server.requests(since: mark).filter { $0.path.hasPrefix("/302") || $0.path == "/" }
            #expect(requests.map(\.origin) == ["first", "second"])
            #expect(requests.map(\.token) == ["secret", nil])
            #expect(requests.map(\.userAgent) == ["Agent/1", "Agent/1"])
        }

        @Test func fieldsDoNotFollowARedirectAtTheSameOrigin() throws {
            let mark = server.mark
            let view = try WebViewProcess.open(Self.path("302", to: server.first + "/")) {
                $0.headers = ["X-Token": "secret"]
            }
            try view.loaded(server.first + "/")
            view.close()
            let requests = server.requests(since: mark).filter { $0.path.hasPrefix("/302") || $0.path == "/" }
            #expect(requests.map(\.token) == ["secret", nil])
        }

        @Test func aPageThatAsksForAPasswordIsShownWithout() throws {
            let mark = server.mark
            let view = try WebViewProcess.open("/basic")
            #expect(server.answer(since: mark) == "shown")
            view.close()
        }

        @Test func aPageDoesNotLearnTheLocation() throws {
            let mark = server.mark
            let view = try WebViewProcess.open("/location")
            // GeolocationPositionError.PERMISSION_DENIED
            #expect(server.answer(since: mark) == "1")
            view.close()
        }
    }
}
