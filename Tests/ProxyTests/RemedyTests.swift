// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignSitePolicy
import CountersignTLS
import CountersignCertificates
import Testing

/// The remedy for each cause: one table for all advice.
struct RemedyTests {
    private static let sites = """
        https://git.corp.example
        https://api.corp.example credential=work
        https://old.corp.example credential=api
        proxy://proxy.corp.example:8080 credential=corp
        """

    private static func policy(isOpen: Bool = true) throws -> Policy {
        let secret = Secret(utf8: "canary")
        let password = PasswordCredential(name: "corp", user: "ACME\\jdoe", password: secret, generation: 1)
        let tokens = ["api", "work"].map {
            TokenCredential(name: $0, token: secret, generation: 1)
        }
        return Policy(
            sites: try SiteList(files: [("t.sites", sites)]),
            enrolled: isOpen
                ? .open(
                    credentials: ["corp": password], tokens: Dictionary(tokens.map { ($0.name, $0) }) { $1 },
                    identities: []) : .closed(reason: .locked),
            expiryTimes: ["work": 1],
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 1_800_000_000 }),
            interceptionAuthority: nil, generation: 1)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        let site: String
        let scheme: AuthenticationScheme?
        let cause: Refusal.Cause
        let remedies: [Remedy]

        init(
            _ site: String, _ scheme: AuthenticationScheme?, _ cause: Refusal.Cause, _ remedies: [Remedy]
        ) {
            self.site = site
            self.scheme = scheme
            self.cause = cause
            self.remedies = remedies
        }

        var testDescription: String { "\(cause) of \(scheme.map { "\($0)" } ?? "-") at \(site)" }
    }

    private static let git = "https://git.corp.example"
    private static let new = "https://new.corp.example:8443"
    private static let plain = "http://printer.corp.example"
    private static let parent = "proxy://proxy.corp.example:8080"

    static let rows: [Row] = [
        Row(git, .basic, .other, []),
        Row(git, .basic, .ownAuthorization, []),
        Row(new, .basic, .notListed, [.addSite(new)]),
        Row(new, nil, .notListed, [.addSite(new)]),
        Row(plain, .basic, .notListed, [.addSite("\(plain) plaintext=yes")]),
        Row(plain, .bearer, .notListed, [.useHTTPS(host: "printer.corp.example")]),
        Row("proxy://new.example:3128", .basic, .notListed, [.addSite("proxy://new.example:3128 plaintext=yes")]),
        Row(git, .basic, .notIntercepted, [.changeLine(.intercept, line: "t.sites:1")]),
        Row(git, .basic, .untrusted, [.addTrustAnchor]),
        Row(
            git, .basic, .foreignPage("https://evil.example"),
            [
                .changeLine(.permitPage("https://evil.example"), line: "t.sites:1")
            ]),
        Row(git, .basic, .foreignPage(nil), []),
        Row(git, .basic, .plaintext, [.changeLine(.permitPlaintext, line: "t.sites:1")]),
        Row(git, .bearer, .requiresTLS, [.useHTTPS(host: "git.corp.example")]),
        Row(git, .basic, .notPermitted([.digest, .basic]), [.changeLine(.permitScheme(.basic), line: "t.sites:1")]),
        Row(git, nil, .notPermitted([.digest, .basic]), [.changeLine(.permitScheme(.digest), line: "t.sites:1")]),
        Row(
            git, .basic, .noCredential,
            [
                .setCredential(name: "enrollment", .password(user: nil), replaces: false)
            ]),
        Row(git, .bearer, .noCredential, [.setCredential(name: "enrollment", .token, replaces: false)]),
        Row(
            "https://old.corp.example", .basic, .noCredential,
            [
                .changeLine(.nameCredential(.password), line: "t.sites:3")
            ]),
        Row(parent, .basic, .noCredential, [.setCredential(name: "corp", .password(user: nil), replaces: false)]),
        Row("https://api.corp.example", .bearer, .noCredential, [.signIn(name: "work", stepUp: nil)]),
        Row(git, .certificate, .noIdentity(named: nil), [.importIdentity(name: nil, replaces: false)]),
        Row(git, .certificate, .noIdentity(named: "laptop"), [.importIdentity(name: "laptop", replaces: false)]),
        Row(
            git, .certificate, .expiredIdentity("laptop"),
            [
                .renewIdentity(name: "laptop"), .importIdentity(name: "laptop", replaces: true),
            ]),
        Row(
            git, .certificate, .unsuitableIdentities,
            [
                .listIdentities, .importIdentity(name: nil, replaces: false),
            ]),
        Row(git, .basic, .locked, [.unlockVault]),
        Row(git, .basic, .paused, [.resume]),
        Row(git, .bearer, .notCompliant("work"), [.remediate(name: "work")]),
        Row(git, .bearer, .wiped("work"), [.completeWipe(name: "work")]),
        Row(
            parent, .basic, .blocked("corp"),
            [
                .setCredential(name: "corp", .password(user: "ACME\\jdoe"), replaces: true), .permitRetry(name: "corp"),
            ]),
        Row(git, .negotiate, .blocked("Kerberos ticket"), [.permitRetry(name: nil)]),
        Row(parent, .basic, .heldBack("corp"), [.permitRetry(name: "corp")]),
        Row(git, .negotiate, .heldBack(nil), [.permitRetry(name: nil)]),
        Row(
            parent, .basic, .rejected,
            [
                .setCredential(name: "corp", .password(user: "ACME\\jdoe"), replaces: true)
            ]),
        Row("https://old.corp.example", .bearer, .rejected, [.setCredential(name: "api", .token, replaces: true)]),
        Row("https://api.corp.example", .bearer, .rejected, [.signIn(name: "work", stepUp: nil)]),
        Row(
            "https://api.corp.example", .bearer, .insufficientToken(StepUp(scopes: ["read"])),
            [
                .signIn(name: "work", stepUp: StepUp(scopes: ["read"]))
            ]),
        Row(git, .bearer, .insufficientToken(StepUp(scopes: ["read"])), []),
        Row(git, .negotiate, .noTicket, [.obtainTicket]),
        Row(git, .negotiate, .wantsTicket, [.obtainTicket]),
        Row(git, .negotiate, .notContinued("NTLM"), [.obtainTicket]),
        Row(git, .ntlm, .notContinued("NTLM"), []),
    ]

    @Test(arguments: rows) func aCauseHasItsRemedies(row: Row) throws {
        let policy = try Self.policy()
        let origin = try Self.origin(row.site)
        let request = UnansweredRequest(origin, policy.sites.rule(for: origin), row.scheme)
        #expect(policy.remedies(for: Refusal(row.cause, "test"), of: request) == row.remedies)
    }

    private static func origin(_ text: String) throws -> Origin {
        guard let host = text.firstRange(of: "proxy://") else { return try Origin(url: text) }
        return try Origin(scheme: .proxy, authority: String(text[host.upperBound...]))
    }

    /// The client of a registry gets its token itself, whether or not the registry is listed.
    @Test func theClientOfARegistryGetsItsTokenItself() throws {
        let policy = try Self.policy()
        let origin = try Origin(url: Self.git)
        func remedies(_ parameters: [AuthParameter], _ cause: Refusal.Cause) -> [Remedy] {
            let challenge = Challenge(scheme: "Bearer", parameters: parameters)
            let request = UnansweredRequest(origin, policy.sites.rule(for: origin), challenge)
            return policy.remedies(for: Refusal(cause, "test"), of: request)
        }
        let url = AuthParameter("realm", "https://auth.example/token")
        let service = AuthParameter("service", "registry")
        let own = [Remedy.clientObtainsToken(from: "https://auth.example")]
        #expect(remedies([url, service], .noCredential) == own)
        #expect(remedies([url, service], .notListed) == own)
        #expect(remedies([url], .notListed) == [.addSite(Self.git)])
        #expect(
            remedies([AuthParameter("realm", "http://auth.example/"), service], .notListed) == [.addSite(Self.git)])
    }

    @Test func nothingIsSetInAClosedVault() throws {
        let policy = try Self.policy(isOpen: false)
        let origin = try Origin(url: Self.git)
        let request = UnansweredRequest(origin, policy.sites.rule(for: origin), .basic)
        #expect(policy.remedies(for: Refusal(.noCredential, "test"), of: request).isEmpty)
        #expect(
            policy.credentialDecision(for: try #require(request.rule), at: origin)
                == .performDefaultHandling(reason: .locked))
    }

    @Test func aRefusalSaysItsRemedyOnce() {
        #expect(Refusal.paused.text == "integrated authentication is switched off; run `countersign resume`")
        #expect(Refusal.paused.bareText == "integrated authentication is switched off")
        #expect(Refusal.locked.after("a: ").bareText == "a: the vault is locked")
        #expect(Refusal.locked.after("a: ").text == "a: the vault is locked; run `countersign vault unlock`")
        #expect(Refusal.unlisted.bareText == nil)
    }
}
