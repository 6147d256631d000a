// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Chromium, with the CA installed by `countersign ca install`.
@Suite(.waiting) struct BrowserTests {
    /// A user with one site for each kind of challenge and one that is not trusted, and the pages that Chromium showed.
    private final class Visit: Sendable {
        private static let made = Result { try Visit() }

        static var shared: Visit { get throws { try made.get() } }

        let user: Countersign
        let proxy: RunningProxy
        let untrusted: ChallengingOrigin
        let untrustedSites: UntrustedSites
        let trusting: Browser
        let pages: [String: Browser.Page]
        let strangers: [String: Browser.Page]
        let origins: Origins
        let kerberos: ApacheKerberosOrigin
        let sites: [String: String]

        private init() throws {
            origins = try Origins.shared
            let realm = try KerberosRealm(services: ["HTTP/www.test.localhost"])
            kerberos = try ApacheKerberosOrigin(realm)
            try realm.kinit(cache: "tickets")
            untrusted = try .acme(.basic, certificate: "server-expired")
            user = try Countersign()
            try user.enroll()
            try user.succeed("credential", "set", "api", "--token-stdin", input: NginxOrigin.token)
            try user.importIdentity("laptop")
            let basic = "https://basic.test.localhost:\(origins.apache.httpsPort)"
            let certificate = "https://cert.test.localhost:\(origins.nginx.mutual13Port)"
            let bad = "https://bad.test.localhost:\(untrusted.port)"
            let digest = "https://digest.test.localhost:\(origins.apache.httpsPort)"
            let bearer = "https://bearer.test.localhost:\(origins.nginx.httpsPort)"
            untrustedSites = try UntrustedSites()
            for site in [basic, digest, certificate, bad] + untrustedSites.urls { try user.allow(site) }
            try user.allow("\(bearer) answer=bearer credential=api", "\(kerberos.url) answer=negotiate")
            sites = ["digest": digest, "bearer": bearer, "kerberos": kerberos.url]
            proxy = try user.serve(environment: realm.environment(cache: "tickets"))
            trusting = try Browser()
            let installed = try user.run(
                ["ca", "install", "--store", "nss", "--yes"],
                environment: ["HOME": trusting.home, "XDG_DATA_HOME": ""])
            guard installed.status == 0 else { throw HarnessError("ca install: \(installed.said)") }
            pages = try trusting.open(
                [
                    ("basic", "\(basic)/basic/index?browser"), ("certificate", "\(certificate)/who?browser"),
                    ("digest", "\(digest)/digest/index?browser"), ("bearer", "\(bearer)/bearer/browser"),
                    ("kerberos", "\(kerberos.url)/kerberos/index?browser"),
                    ("untrusted", "\(bad)/echo?browser"),
                ] + untrustedSites.pages(named: "chromium"), proxy: proxy.url)
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
        let logged = visit.origins.logged(query: "browser") { $0.user == Countersign.user && $0.status == 200 }
        #expect(!logged.isEmpty)
    }

    @Test(arguments: [
        ("digest", "apache digest/index"), ("bearer", "bearer /bearer/browser"), ("kerberos", "apache kerberos/index"),
    ])
    func siteOfAnotherSchemeOpensWithoutPromptOrWarning(_ name: String, _ text: String) throws {
        let visit = try Visit.shared
        let page = try visit.page(name)
        #expect(page.error == nil && page.state == "secure" && page.prompts == 0, "\(page)")
        #expect(page.text.contains(text), "\(page)")
        let logged = try visit.proxy.logged(site: visit.sites[name] ?? "").filter { $0.method == "GET" }
        #expect(logged.first?.challenge == (name == "kerberos" ? "negotiate" : name), "\(logged)")
        #expect(logged.first?.status == 200, "\(logged)")
    }

    @Test func clientCertificateSiteOpensWithoutPromptOrWarning() throws {
        let page = try Visit.shared.page("certificate")
        #expect(page.error == nil && page.state == "secure" && page.prompts == 0, "\(page)")
        #expect(page.text.contains("TLSv1.3 CN=laptop,O=Test"), "\(page)")
    }

    @Test func untrustedSiteShowsTheBrowsersWarning() throws {
        let visit = try Visit.shared
        let page = try visit.page("untrusted")
        #expect(page.error == "net::ERR_CERT_DATE_INVALID" && page.state == "insecure-broken", "\(page)")
        #expect(page.text.contains("Your connection is not private"), "\(page)")
        #expect(page.text.contains("NET::ERR_CERT_DATE_INVALID"), "\(page)")
        #expect(visit.untrusted.log.requests.isEmpty)
    }

    @Test(arguments: [
        ("expired", "DATE_INVALID"), ("wrongname", "COMMON_NAME_INVALID"), ("stranger", "AUTHORITY_INVALID"),
        ("self", "AUTHORITY_INVALID"),
    ])
    func proceedingPastAWarningOpensThePage(_ site: String, _ error: String) throws {
        let visit = try Visit.shared
        let warning = try visit.page("chromium-\(site)")
        #expect(
            warning.error == "net::ERR_CERT_\(error)" && warning.text.contains("NET::ERR_CERT_\(error)"), "\(warning)")
        for name in ["chromium-\(site)-proceeded", "chromium-\(site)-again"] {
            let page = try visit.page(name)
            #expect(page.error == nil && page.text.contains(UntrustedSites.pageText), "\(page)")
            #expect(page.state == "insecure-broken", "\(page)")
        }
        #expect(visit.untrustedSites.requestCount(site, from: "chromium") == 2)
    }

    @Test func listedSiteWithoutTheCAShowsTheBrowsersWarning() throws {
        let visit = try Visit.shared
        let page = try visit.page("stranger")
        #expect(page.error == "net::ERR_CERT_AUTHORITY_INVALID" && page.state == "insecure-broken", "\(page)")
        #expect(visit.origins.logged(query: "stranger").isEmpty)
    }

    @Test func eachPageHasAScreenshot() throws {
        let visit = try Visit.shared
        let pictures = ["basic", "certificate", "untrusted", "chromium-expired", "chromium-expired-proceeded"]
            .map(visit.trusting.picture)
        for picture in pictures {
            #expect(picture.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) && picture.count > 1000)
        }
        #expect(Set(pictures).count == pictures.count)
    }
}

/// Firefox, with the CA installed by `countersign ca install`.
@Suite(.waiting) struct FirefoxTests {
    private final class Visit: Sendable {
        private static let made = Result { try Visit() }

        static var shared: Visit { get throws { try made.get() } }

        let sites: UntrustedSites
        let proxy: RunningProxy
        let pages: [String: Firefox.Page]

        private init() throws {
            let user = try Countersign()
            try user.enroll()
            sites = try UntrustedSites()
            let good = "https://basic.test.localhost:\(try Origins.shared.apache.httpsPort)"
            for site in [good] + sites.urls { try user.allow(site) }
            proxy = try user.serve()
            let firefox = try Firefox()
            let installed = try user.run(
                ["ca", "install", "--store", "nss", "--yes"], environment: ["HOME": firefox.home])
            guard installed.status == 0 else { throw HarnessError("ca install: \(installed.said)") }
            pages = try firefox.open(
                [("firefox-basic", "\(good)/basic/index?firefox")] + sites.pages(named: "firefox"), proxy: proxy.url)
        }
    }

    @Test func basicSiteOpensWithoutAWarning() throws {
        let page = try #require(try Visit.shared.pages["firefox-basic"])
        #expect(page.error == nil && page.text.contains("apache basic/index"), "\(page)")
    }

    @Test(arguments: [
        ("expired", "SEC_ERROR_EXPIRED_CERTIFICATE"), ("wrongname", "SSL_ERROR_BAD_CERT_DOMAIN"),
        ("stranger", "SEC_ERROR_UNKNOWN_ISSUER"), ("self", "SEC_ERROR_UNKNOWN_ISSUER"),
    ])
    func proceedingPastAWarningOpensThePage(_ site: String, _ error: String) throws {
        let visit = try Visit.shared
        let warning = try #require(visit.pages["firefox-\(site)"])
        #expect(warning.error == error, "\(warning)")
        for name in ["firefox-\(site)-proceeded", "firefox-\(site)-again"] {
            let page = try #require(visit.pages[name])
            #expect(page.error == nil && page.text.contains(UntrustedSites.pageText), "\(page)")
        }
        // The warning's button ignores clicks at first, so it is clicked until the page is there; Firefox may ask for
        // the page at each click. No request is the proxy's own.
        #expect(visit.sites.requestCount(site, from: "firefox") >= 2)
        let count = visit.sites.requestCount(site)
        let sent = try visit.proxy.logged(site: visit.sites.url(site), atLeast: count).filter { $0.method == "GET" }
        #expect(count <= sent.count, "\(count) of \(sent)")
    }
}

/// Origins whose certificates do not verify, each for one reason.
final class UntrustedSites: Sendable {
    /// Part of the origins' page.
    static let pageText = "\"method\": \"GET\""

    private let origins: [(name: String, origin: ChallengingOrigin)]

    init() throws {
        origins = try [
            ("expired", "server-expired"), ("wrongname", "server-name"), ("stranger", "server-other"),
            ("self", "server-self"),
        ].map { name, certificate in
            (name, try ChallengingOrigin.acme(.open, certificate: certificate))
        }
    }

    var urls: [String] { origins.map { url($0.name) } }

    func url(_ name: String) -> String {
        let port = origins.first { $0.name == name }?.origin.port ?? 0
        return "https://\(name).test.localhost:\(port)"
    }

    /// A page of each origin, for a browser that proceeds past the warning.
    func pages(named browser: String) -> [(name: String, url: String)] {
        zip(origins, urls).map { ("\(browser)-\($0.name)", "!\($1)/echo?\(browser)") }
    }

    func requestCount(_ name: String) -> Int { origins.first { $0.name == name }?.origin.log.requests.count ?? 0 }

    func requestCount(_ name: String, from browser: String) -> Int {
        origins.first { $0.name == name }?.origin.log.requests
            .filter { $0.path?.hasSuffix("/echo?\(browser)") == true }.count ?? 0
    }
}
