// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Chromium, with the CA installed by `countersign ca install`.
@Suite struct BrowserTests {
    /// A user with one site that requires Basic, one that requires a client certificate and one that is not trusted,
    /// and the pages that Chromium showed.
    private final class Visit: Sendable {
        private static let made = Result { try Visit() }

        static var shared: Visit { get throws { try made.get() } }

        let user: Countersign
        let proxy: RunningProxy
        let untrusted: ChallengingOrigin
        let trusting: Browser
        let pages: [String: Browser.Page]
        let strangers: [String: Browser.Page]
        let origins: Origins

        private init() throws {
            origins = try Origins.shared
            untrusted = try .acme(.basic, certificate: "server-expired")
            user = try Countersign()
            try user.enroll()
            try user.importIdentity("laptop")
            let basic = "https://basic.test.localhost:\(origins.apache.httpsPort)"
            let certificate = "https://cert.test.localhost:\(origins.nginx.mutual13Port)"
            let bad = "https://bad.test.localhost:\(untrusted.port)"
            try user.allow(basic, certificate, bad)
            proxy = try user.serve()
            trusting = try Browser()
            let installed = try user.run(
                ["ca", "install", "--store", "nss", "--yes"], environment: ["HOME": trusting.home])
            guard installed.status == 0 else { throw HarnessError("ca install: \(installed.said)") }
            pages = try trusting.open(
                [
                    ("basic", "\(basic)/basic/index?browser"), ("certificate", "\(certificate)/who?browser"),
                    ("untrusted", "\(bad)/echo?browser"),
                ], proxy: proxy.url)
            strangers = try Browser().open([("stranger", "\(basic)/basic/index?stranger")], proxy: proxy.url)
        }

        func page(_ name: String) throws -> Browser.Page {
            try #require(pages[name] ?? strangers[name])
        }
    }

    @Test func basicSiteOpensWithoutPromptOrWarning() throws {
        let visit = try Visit.shared
        let page = try visit.page("basic")
        #expect(page.error == nil && page.state == "secure" && page.prompts == 0, "\(page)")
        #expect(page.text.contains("apache basic/index"), "\(page)")
        #expect(page.issuer?.hasPrefix("Countersign interception issuer ") == true, "\(page)")
        #expect(visit.origins.logged(query: "browser").contains { $0.user == Countersign.user && $0.status == 200 })
    }

    @Test func clientCertificateSiteOpensWithoutPromptOrWarning() throws {
        let page = try Visit.shared.page("certificate")
        #expect(page.error == nil && page.state == "secure" && page.prompts == 0, "\(page)")
        #expect(page.text.contains("TLSv1.3 CN=laptop,O=Test"), "\(page)")
    }

    @Test func untrustedSiteShowsTheBrowsersWarning() throws {
        let visit = try Visit.shared
        let page = try visit.page("untrusted")
        #expect(page.error?.hasPrefix("net::ERR_CERT_") == true && page.state == "insecure-broken", "\(page)")
        #expect(page.text.contains("Your connection is not private"), "\(page)")
        #expect(page.text.contains("NET::ERR_CERT_"), "\(page)")
        #expect(page.issuer?.hasPrefix("Not trusted by Countersign: certificate expired ") == true, "\(page)")
        #expect(visit.untrusted.log.requests.isEmpty)
    }

    @Test func listedSiteWithoutTheCAShowsTheBrowsersWarning() throws {
        let visit = try Visit.shared
        let page = try visit.page("stranger")
        #expect(page.error == "net::ERR_CERT_AUTHORITY_INVALID" && page.state == "insecure-broken", "\(page)")
        #expect(visit.origins.logged(query: "stranger").isEmpty)
    }

    @Test func eachPageHasAScreenshot() throws {
        let visit = try Visit.shared
        let pictures = ["basic", "certificate", "untrusted"].map(visit.trusting.picture)
        for picture in pictures {
            #expect(picture.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) && picture.count > 1000)
        }
        #expect(Set(pictures).count == pictures.count)
    }
}
