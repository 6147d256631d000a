// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// A rejected password is not sent again, so the proxy cannot lock an account.
@Suite(.waiting) struct BreakerTests {
    @Test(arguments: [ChallengingOrigin.Mode.basic, .ntlm, .negotiate])
    func thousandRequestsWithAWrongPasswordAreOneLogin(_ mode: ChallengingOrigin.Mode) throws {
        let origin = try ChallengingOrigin.acme(mode)
        let user = try Countersign()
        try user.enroll(password: Countersign.wrongPassword)
        let url = "https://locked.test.localhost:\(origin.port)"
        try user.allow(url + (mode == .basic ? "" : " domain=ACME"))
        let proxy = try user.serve()
        let many = try Command.run(
            Tool.path("curl"),
            [
                "-q", "-sS", "-Z", "--parallel-max", "20", "-x", proxy.url, "--cacert", proxy.anchor, "-o", "/dev/null",
                "-w", "%{http_code}\n", "\(url)/echo?[1-1000]",
            ], in: user.folder)
        #expect(many.status == 0)
        #expect(many.output.split(separator: "\n").filter { $0 == "401" }.count == 1000, "\(many.said.suffix(2000))")
        let logins = origin.log.requests.filter { $0.auth == "basic" || $0.auth == "authenticate" }
        #expect(logins.count == 1, "\(logins.count) logins")
        try expectRepaired(user, proxy, origin, url)
    }

    private func expectRepaired(_ user: Countersign, _ proxy: RunningProxy, _ origin: ChallengingOrigin, _ url: String)
        throws
    {
        let held = try proxy.get("\(url)/echo")
        #expect(held.proxyStatus.hasPrefix("countersign; details=\"not answered: "), "\(held.said)")
        try user.enroll()
        let answered = try poll { try proxy.get("\(url)/echo?repaired").status == 200 ? true : nil }
        #expect(answered == true)
        let refused = origin.log.requests.filter { $0.auth != nil && $0.auth != "negotiate" && $0.status == 401 }
        #expect(refused.count == 1)
    }

    @Test func aStalePasswordIsSentToTwoOfThreeSites() throws {
        let origins = try (1...3).map { _ in try ChallengingOrigin.acme(.basic) }
        let user = try Countersign()
        try user.enroll(password: Countersign.wrongPassword)
        for origin in origins { try user.allow("https://three.test.localhost:\(origin.port)") }
        let proxy = try user.serve()
        for _ in 1...3 {
            for origin in origins {
                #expect(try proxy.get("https://three.test.localhost:\(origin.port)/echo").status == 401)
            }
        }
        #expect(origins.map { $0.log.requests.filter { $0.auth == "basic" }.count } == [1, 1, 0])
    }

    /// Apache's mod_authz_user sends 401 if a correct password lacks a permission.
    @Test func aVisitWithoutPermissionDoesNotBlockTheRealm() throws {
        let origins = try Origins.shared
        let user = try Countersign()
        try user.enroll()
        let url = "https://permission.test.localhost:\(origins.apache.httpsPort)"
        try user.allow(url)
        let proxy = try user.serve()
        let visits = ["", "forbidden/", "forbidden/", "", "forbidden/", ""]
        for (number, path) in visits.enumerated() {
            let seen = try proxy.get("\(url)/basic/\(path)index?permission-\(number)")
            #expect(seen.status == (path.isEmpty ? 200 : 401), "\(number): \(seen.said)")
        }
        func sent() -> [Int] {
            visits.indices.map { number in
                origins.logged(query: "permission-\(number)").filter { $0.auth == "Basic" }.count
            }
        }
        // The second visit without permission is not worth another attempt. The last line of the log may come late.
        let expected = [1, 1, 0, 1, 1, 1]
        _ = poll { sent() == expected ? true : nil }
        #expect(sent() == expected)
    }

    @Test func correctPasswordWithoutPermissionIsNotSentAgain() throws {
        let origins = try Origins.shared
        let user = try Countersign()
        try user.enroll()
        let url = "https://forbidden.test.localhost:\(origins.apache.httpsPort)"
        try user.allow(url)
        let proxy = try user.serve()
        for number in 1...5 {
            let seen = try proxy.get("\(url)/basic/forbidden/index?forbidden-\(number)")
            #expect(seen.status == 401, "\(seen.said)")
        }
        _ = origins.logged(query: "forbidden-1") { $0.auth == "Basic" }
        let logins = (1...5).flatMap { origins.logged(query: "forbidden-\($0)") }.filter { $0.auth == "Basic" }
        #expect(logins.count == 1)
    }

    @Test(arguments: [ChallengingOrigin.Mode.basic, .ntlm, .negotiate])
    func anOriginThatClosesTheConnectionReceivesAPasswordTwice(_ mode: ChallengingOrigin.Mode) throws {
        let origin = try ChallengingOrigin.acme(mode)
        let user = try Countersign()
        try user.enroll(password: Countersign.wrongPassword)
        let url = "https://silent.test.localhost:\(origin.port)/fault/close-on-authenticate/x"
        try user.allow("https://silent.test.localhost:\(origin.port)" + (mode == .basic ? "" : " domain=ACME"))
        let proxy = try user.serve()
        let statuses = try (1...3).map { _ in try proxy.get(url).status }
        #expect(statuses.last == 401)
        for _ in 1...2 { #expect(try user.run(["exec"] + Self.fetch(url)).output == "401") }
        let logins = origin.log.requests.filter { $0.auth == "basic" || $0.auth == "authenticate" }
        #expect(logins.count == 2)
    }

    // MARK: Several processes

    private static func fetch(_ url: String) -> [String] {
        ["--", "curl", "-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url]
    }

    @Test(arguments: [true, false])
    func sixCommandsSendAStalePasswordOnce(atTheSameTime: Bool) throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.enroll(password: Countersign.wrongPassword)
        let url = "https://cron.test.localhost:\(origin.port)"
        try user.allow(url)
        let words = Self.fetch("\(url)/echo")
        if atTheSameTime {
            let all = try Command.run(
                "/bin/sh",
                ["-c", "for n in 1 2 3 4 5 6; do \"$@\" & done; wait", "-", try Countersign.executable, "exec"]
                    + ["--home", user.home] + words,
                environment: ["HOME": user.folder.path], in: user.folder)
            #expect(all.output == String(repeating: "401", count: 6), "\(all.said)")
        } else {
            for _ in 1...6 { #expect(try user.run(["exec"] + words).output == "401") }
        }
        #expect(origin.log.requests.filter { $0.auth == "basic" }.count == 1)
    }

    @Test func aStalePasswordIsSentToTwoOfThreeSitesByAllProcessesTogether() throws {
        let origins = try (1...3).map { _ in try ChallengingOrigin.acme(.basic) }
        let user = try Countersign()
        try user.enroll(password: Countersign.wrongPassword)
        let urls = origins.map { "https://restart.test.localhost:\($0.port)" }
        for url in urls { try user.allow(url) }
        for _ in 1...3 {
            let proxy = try user.serve()
            for url in urls {
                #expect(try proxy.get("\(url)/echo").status == 401)
                #expect(try user.run(["exec"] + Self.fetch("\(url)/echo")).output == "401")
            }
            proxy.process.stop()
        }
        #expect(origins.map { $0.log.requests.filter { $0.auth == "basic" }.count } == [1, 1, 0])
    }

    /// The password changes at the site while a server that has used it is running.
    @Test func aRunningServerLearnsOfARejectionByACommand() throws {
        let origins = try (1...2).map { _ in try ChallengingOrigin.acme(.basic) }
        let user = try Countersign()
        try user.enroll(password: Countersign.wrongPassword)
        let urls = origins.map { "https://told.test.localhost:\($0.port)" }
        for url in urls { try user.allow(url) }
        let proxy = try user.serve()
        #expect(try user.run(["exec"] + Self.fetch("\(urls[0])/echo")).output == "401")
        #expect(try proxy.get("\(urls[0])/echo").status == 401)
        #expect(try user.run(["exec"] + Self.fetch("\(urls[1])/echo")).output == "401")
        #expect(try proxy.get("\(urls[1])/echo").status == 401)
        #expect(origins.map { $0.log.requests.filter { $0.auth == "basic" }.count } == [1, 1])
        try user.enroll()
        let answered = try poll { try proxy.get("\(urls[0])/echo?new").status == 200 ? true : nil }
        #expect(answered == true)
        #expect(try user.run(["exec"] + Self.fetch("\(urls[1])/echo")).output == "200")
    }

    // MARK: Display

    @Test func aBlockedCredentialIsShownAndMayBeTriedOnceMore() throws {
        let origin = try ChallengingOrigin.acme(.basic)
        let user = try Countersign()
        try user.enroll(password: Countersign.wrongPassword)
        let site = "https://shown.test.localhost:\(origin.port)"
        try user.allow(site)
        let proxy = try user.serve()
        #expect(try proxy.get("\(site)/echo").status == 401)
        let place = "rejected at \(site) (basic, realm \"TestOrigin\") since "
        let log = "\(site) (basic, realm \"TestOrigin\") rejected credential \"enrollment\", which is not sent there"
        #expect(TextFile.text(proxy.process.errorPath).contains(log))
        #expect(try user.succeed("credential", "list").contains(place))
        #expect(try user.succeed("vault", "status").contains("blocked    enrollment: \(place)"))
        let explained = try user.succeed("explain", site)
        #expect(explained.contains("blocked      enrollment: \(place)"))
        #expect(explained.contains("  yes: may be answered here  no: credential \"enrollment\" was rejected here"))
        #expect(try user.succeed("credential", "list", "--json").contains("\"everywhere\" : false"))

        let permitted = "credential \"enrollment\" may be tried once more\n"
        #expect(try user.succeed("credential", "retry", "enrollment") == permitted)
        #expect(try user.run("credential", "retry", "printer").status == 1)
        let sent = { origin.log.requests.filter { $0.auth == "basic" }.count }
        let isTried = try poll { try proxy.get("\(site)/echo").status == 401 && sent() == 2 ? true : nil }
        #expect(isTried == true)
        for _ in 1...3 { #expect(try proxy.get("\(site)/echo").status == 401) }
        #expect(sent() == 2)
        #expect(try user.succeed("credential", "list").contains("; not sent anywhere until it changes"))

        // The same password again is still blocked; another one is not.
        let again = try user.run(
            "credential", "set", "--user", Countersign.user, "--password-stdin", input: Countersign.wrongPassword)
        #expect(again.said.contains("this user name and password are blocked: rejected at "), "\(again.said)")
        try user.enroll()
        #expect(try user.succeed("credential", "list", "--no-header") == "enrollment  password  jdoe  no\n")
        #expect(!(try user.succeed("vault", "status")).contains("blocked"))
        #expect(try user.run("credential", "retry").status == 1)
        let answered = try poll { try proxy.get("\(site)/echo").status == 200 ? true : nil }
        #expect(answered == true)
    }
}
