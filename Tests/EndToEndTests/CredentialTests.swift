// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// Which user name and password are sent.
@Suite(.waiting) struct CredentialTests {
    private static let modes: [ChallengingOrigin.Mode] = [.basic, .ntlm, .negotiate]

    private func answers(
        _ origin: ChallengingOrigin, user name: String, password: String, options: String = ""
    ) throws -> HTTPClient.Response {
        let user = try Countersign()
        try user.enroll(name, password: password)
        try user.allow("https://name.test.localhost:\(origin.port) \(options)")
        return try user.serve().get("https://name.test.localhost:\(origin.port)/echo")
    }

    @Test(
        arguments: modes,
        ["pässwörd ünï", "Пароль и пробел", "日本語🔑", "quote\"back\\slash", String(repeating: "x", count: 200)])
    func nonASCIIPasswordsAreAccepted(_ mode: ChallengingOrigin.Mode, _ password: String) throws {
        let origin = try ChallengingOrigin(mode, user: mode == .basic ? "jdoe" : "ACME\\jdoe", password: password)
        let seen = try answers(
            origin, user: "jdoe", password: password,
            options: mode == .basic ? "answer=basic" : "answer=ntlm domain=ACME")
        #expect(seen.status == 200, "\(seen.said)")
    }

    @Test(arguments: [("ACME\\jdoe", ""), ("jdoe", "domain=ACME"), ("ACME\\jdoe", "domain=ELSE")])
    func domainComesFromTheUserNameOrTheLine(_ name: String, _ options: String) throws {
        let origin = try ChallengingOrigin.acme(.ntlm)
        let seen = try answers(origin, user: name, password: Countersign.password, options: options)
        #expect(seen.status == 200 && seen.values("X-User") == ["ACME\\jdoe"], "\(seen.said)")
    }

    @Test func lineCanNameItsCredential() throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.enroll("else", password: Countersign.wrongPassword)
        try user.enroll(name: "work")
        try user.allow("https://named.test.localhost:\(origin.port) credential=work")
        let seen = try user.serve().get("https://named.test.localhost:\(origin.port)/echo")
        #expect(seen.status == 200 && seen.values("X-User") == ["jdoe"], "\(seen.said)")
    }

    @Test(arguments: modes)
    func removedCredentialIsNoLongerUsed(_ mode: ChallengingOrigin.Mode) throws {
        let origin = try ChallengingOrigin.acme(mode)
        let user = try Countersign()
        try user.enroll("ACME\\jdoe")
        if mode == .basic { try user.enroll() }
        let url = "https://removed.test.localhost:\(origin.port)"
        try user.allow(url)
        let proxy = try user.serve()
        #expect(try proxy.get("\(url)/echo").status == 200)
        try user.succeed("credential", "remove", "enrollment")
        let refused = try poll {
            let seen = try proxy.get("\(url)/echo")
            return seen.status == 401 ? seen : nil
        }
        #expect(
            refused?.proxyStatus.contains("no credential") == true,
            "\(refused?.said ?? "")")
    }

    @Test func withoutACredentialTheChallengeIsPassedOnWithTheReason() throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.allow("https://nobody.test.localhost:\(origin.port)")
        let seen = try user.serve().get("https://nobody.test.localhost:\(origin.port)/echo")
        #expect(seen.status == 401 && seen.text == "origin says: log in first\n", "\(seen.said)")
        #expect(seen.values("WWW-Authenticate") == ["Basic realm=\"TestOrigin\", charset=\"UTF-8\""])
        #expect(seen.proxyStatus.hasPrefix("countersign; details=\"not answered: no credential"), "\(seen.said)")
    }
}
