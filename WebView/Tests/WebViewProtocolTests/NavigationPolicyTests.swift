// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

struct NavigationPolicyTests {
    static let policy: NavigationPolicy = {
        do {
            return NavigationPolicy(
                redirectURIs: try [
                    "com.example.app:/cb", "msauth.com.example.app://auth", "https://app.example/cb",
                    "http://127.0.0.1:8000/", "https://login.example/done",
                ].map(RedirectURI.init),
                allowedOrigins: ["https://login.example", "https://idp.example:8443"].compactMap { Origin($0) })
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    @Test(
        arguments: [
            ("com.example.app:/cb?code=1&state=2", .redirect),
            ("com.example.app:/cb#code=1", .redirect),
            ("com.example.app:/cb", .redirect),
            ("COM.EXAMPLE.APP:/cb?code=1", .redirect),
            ("com.example.app:/cb/", .refuse(.scheme)),
            ("com.example.app:/CB", .refuse(.scheme)),
            ("com.example.app:/cbx", .refuse(.scheme)),
            ("com.example.app:cb", .refuse(.scheme)),
            ("com.example.app:/%63b", .refuse(.scheme)),
            ("com.example.app://cb", .refuse(.scheme)),
            ("com.example.app:///cb", .refuse(.scheme)),
            ("com.example.app2:/cb", .refuse(.scheme)),
            ("msauth.com.example.app://auth?code=1", .redirect),
            ("msauth.com.example.app://AUTH/?code=1", .refuse(.scheme)),
            ("msauth.com.example.app://Auth?code=1", .redirect),
            ("msauth.com.example.app://u@auth?code=1", .refuse(.scheme)),
            ("https://app.example/cb?code=1", .redirect),
            ("https://app.example:443/cb?code=1", .redirect),
            ("https://APP.example/cb?code=1", .redirect),
            ("https://app.example:444/cb?code=1", .refuse(.origin)),
            ("https://app.example./cb?code=1", .refuse(.origin)),
            ("https://u@app.example/cb?code=1", .refuse(.userName)),
            ("https://app.example/cb2", .refuse(.origin)),
            ("http://app.example/cb?code=1", .refuse(.insecure)),
            ("http://127.0.0.1:8000?code=1", .redirect),
            ("http://127.0.0.1:8001/?code=1", .refuse(.insecure)),
            ("http://localhost:8000/?code=1", .refuse(.insecure)),
            ("https://login.example/done?code=1", .redirect),
            ("https://login.example/", .allow),
            ("https://login.example", .allow),
            ("https://login.example:443/a?b=c", .allow),
            ("https://LOGIN.example/", .allow),
            ("https://idp.example:8443/x", .allow),
            ("https://idp.example/x", .refuse(.origin)),
            ("https://login.example.evil.example/", .refuse(.origin)),
            ("https://evil.example/https://login.example/", .refuse(.origin)),
            ("https://login.example@evil.example/", .refuse(.userName)),
            ("https://user@login.example/", .refuse(.userName)),
            ("https://evil.example#@login.example/", .refuse(.origin)),
            ("https://evil.example?@login.example/", .refuse(.origin)),
            ("https://login.example./", .refuse(.origin)),
            ("https://sub.login.example/", .refuse(.origin)),
            ("http://login.example/", .refuse(.insecure)),
            ("urn:http-auth:PKeyAuth?nonce=1&SubmitUrl=x", .deviceChallenge),
            ("URN:HTTP-AUTH:pkeyauth?nonce=1", .deviceChallenge),
            ("urn:http-auth:PKeyAuth", .deviceChallenge),
            ("urn:http-auth:PKeyAuth2?nonce=1", .refuse(.scheme)),
            ("urn:http-auth:PKeyAuth/a?nonce=1", .refuse(.scheme)),
            ("urn://http-auth:PKeyAuth?nonce=1", .refuse(.malformed)),
            ("urn:ietf:wg:oauth:2.0:oob", .refuse(.scheme)),
            ("about:blank", .allow),
            ("about:srcdoc", .allow),
            ("about:config", .refuse(.scheme)),
            ("data:text/html,x", .refuse(.scheme)),
            ("blob:https://login.example/1", .refuse(.scheme)),
            ("file:///etc/passwd", .refuse(.scheme)),
            ("javascript:alert(1)", .refuse(.scheme)),
            ("msauth://enroll?cpurl=x", .refuse(.specialURL)),
            ("browser://example", .refuse(.specialURL)),
            ("", .refuse(.malformed)),
            ("login.example/", .refuse(.malformed)),
            ("https:///x", .refuse(.malformed)),
            ("https:login.example", .refuse(.malformed)),
            ("https://login.example\\@evil.example/", .refuse(.malformed)),
            ("https://login.example/ x", .refuse(.malformed)),
            ("https://login.example:0/", .refuse(.malformed)),
            ("https://login.example:65536/", .refuse(.malformed)),
            ("https://login.example:44a/", .refuse(.malformed)),
            ("https://login.exa\u{0}mple/", .refuse(.malformed)),
            ("https://löögin.example/", .refuse(.malformed)),
            ("https://[::1/", .refuse(.malformed)),
            ("1https://login.example/", .refuse(.malformed)),
        ] as [(String, NavigationPolicy.Decision)])
    func decides(url: String, decision: NavigationPolicy.Decision) {
        #expect(Self.policy.decide(url) == decision)
    }

    @Test(
        arguments: [
            ("https://login.example/", .refuse(.newWindow)),
            ("https://evil.example/", .refuse(.newWindow)),
            ("about:blank", .refuse(.newWindow)),
            ("com.example.app:/cb?code=1", .redirect),
            ("https://app.example/cb?code=1", .redirect),
            ("msauth://enroll", .refuse(.specialURL)),
        ] as [(String, NavigationPolicy.Decision)])
    func aNewWindowIsOnlyARedirect(url: String, decision: NavigationPolicy.Decision) {
        #expect(Self.policy.decide(url, opensWindow: true) == decision)
    }

    @Test(arguments: ["msauth://enroll?cpurl=x", "MSAUTH://enroll", "browser://example", "msauth:"])
    func specialURLsAreReportedIfPermitted(url: String) {
        let policy = NavigationPolicy(redirectURIs: [], allowedOrigins: [], permitsSpecialURLs: true)
        #expect(policy.decide(url) == .specialURL)
        #expect(policy.decide(url, opensWindow: true) == .specialURL)
        #expect(policy.decide("msauth.com.example.app://auth") == .refuse(.scheme))
    }

    @Test func aURLOfTheLargestSizeIsDecided() {
        let start = "https://login.example/"
        let rest = String(repeating: "a", count: Limits.urlBytes - start.utf8.count)
        #expect(Self.policy.decide(start + rest) == .allow)
        #expect(Self.policy.decide(start + rest + "a") == .refuse(.malformed))
    }

    @Test func framesLoadFromTheAllowedOriginsOnly() {
        #expect(
            Self.policy.contentSecurityPolicy
                == "frame-src https://login.example https://idp.example:8443; object-src 'none'")
    }

    @Test(arguments: [
        "", "com.example.app:/cb?x=1", "com.example.app:/cb#x", "https://u@app.example/cb", "http://app.example/cb",
        "http://10.0.0.1/cb", "javascript:x", "data:x", "about:blank", "file:///x", "app example:/cb",
    ])
    func aRedirectURIThatCannotBeOneIsRefused(text: String) {
        #expect(throws: ProtocolError.self) { try RedirectURI(text) }
    }

    @Test(arguments: [
        ("https://login.example/a/b?code=secret#fragment", "https://login.example/a/b"),
        ("https://user:secret@login.example:8443/a", "https://login.example:8443/a"),
        ("https://login.example", "https://login.example/"),
        ("com.example.app:/cb?code=secret", "com.example.app:/cb"),
        ("msauth://enroll?secret", "msauth://enroll"),
        ("data:text/html,secret", "data:"),
        ("mailto:secret", "mailto:"),
        ("about:blank", "about:blank"),
    ])
    func reportedURLsHaveNoSecrets(url: String, reported: String) {
        #expect(PageURL(url)?.withoutSecrets == reported)
    }

    @Test(arguments: [
        "https://login.example/", "https://login.example/a", "https://login.example?", "https://login.example#",
        "https://u@login.example", "login.example", "https://login.example;script-src", "https://'none'",
        "https://*.example", "https://a,b", "ftp://login.example", "https://",
    ])
    func anOriginHasNothingButSchemeHostAndPort(text: String) {
        #expect(Origin(text) == nil)
    }

    @Test func originsArePrintedLikeAPagesOrigin() {
        #expect(Origin("https://LOGIN.example:443")?.description == "https://login.example")
        #expect(Origin("http://[::1]:8080")?.description == "http://[::1]:8080")
    }
}
