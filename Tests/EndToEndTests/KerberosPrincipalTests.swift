// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Kerberos with an enrolled password or keytab, with MIT's KDC. The user has no ticket unless a test obtains one.
@Suite(.waiting) struct KerberosPrincipalTests {
    private static let service = "HTTP/www.test.localhost"
    private static let principal = "\(KerberosRealm.user)@\(KerberosRealm.name)"
    private static let robot = "\(KerberosRealm.robot)@\(KerberosRealm.name)"

    private let realm: KerberosRealm

    init() throws {
        realm = try KerberosRealm(services: [Self.service])
    }

    /// A user whose line for `url` names the principal's credential.
    private func user(at url: String, password: String = KerberosRealm.password) throws -> Countersign {
        let user = try Countersign()
        try user.allow("\(url) credential=work")
        try enroll(user, password: password)
        return user
    }

    private func enroll(_ user: Countersign, password: String) throws {
        try user.succeed(
            "credential", "set", "work", "--principal", Self.principal, "--password-stdin", input: password + "\n")
    }

    private func serve(_ user: Countersign) throws -> RunningProxy {
        try user.serve(environment: realm.environment(cache: "tickets"))
    }

    private func explain(_ user: Countersign, _ url: String) throws -> String {
        try user.run("explain", url, environment: realm.environment(cache: "tickets")).output
    }

    // MARK: Password

    @Test func anEnrolledPasswordObtainsTheTicketOnce() throws {
        let origin = try BindingKerberosOrigin(realm)
        let user = try user(at: origin.url)
        let proxy = try serve(user)
        for _ in 0..<3 {
            let seen = try proxy.get(origin.url)
            #expect(seen.text == "\(Self.principal) 0", "\(seen.said)\(seen.proxyStatus)")
        }
        #expect(realm.logOns("ISSUE").count == 1 && realm.requests(for: Self.service).count == 1)
        #expect(!FileManager.default.fileExists(atPath: realm.folder.file("tickets")))
        let entries = try proxy.logged(site: origin.url, atLeast: 6).filter { $0.method == "GET" }
        #expect(entries.allSatisfy { $0.credential == "work" && $0.challenge == "negotiate" })
        let explained = try explain(user, origin.url)
        let expected = "credential \"work\", a ticket of \(Self.principal) when it is needed"
        #expect(explained.contains(expected), "\(explained)")
        #expect(explained.contains("credential \"work\" is only for Kerberos"), "\(explained)")
        let listed = try user.succeed("credential", "list")
        #expect(listed.contains("work  principal  \(Self.principal)"), "\(listed)")
    }

    /// However many requests and processes there are, the KDC sees a wrong password once.
    @Test func aWrongPasswordIsSentToTheKDCOnce() throws {
        let origin = try BindingKerberosOrigin(realm)
        let user = try user(at: origin.url, password: "wrong")
        let (first, second) = (try serve(user), try serve(user))
        let urls = (0..<20).flatMap { ["-o", "/dev/null", "\(origin.url)/\($0)"] }
        let all = try Command.run(
            try Tool.path("curl"),
            ["-q", "-sS", "-Z", "-x", first.url, "--cacert", first.anchor, "-w", "%{http_code} "] + urls,
            in: user.folder)
        #expect(all.output == String(repeating: "401 ", count: 20), "\(all.said)")
        for proxy in [first, second] {
            let seen = try proxy.get(origin.url)
            #expect(
                seen.status == 401
                    && seen.proxyStatus.contains("no ticket is requested for \(Self.principal): credential")
                    && seen.proxyStatus.contains("was rejected here and has not changed since"), "\(seen.proxyStatus)")
        }
        #expect(realm.logOns("PREAUTH_FAILED").count == 1, "\(realm.folder.text("kdc.log"))")
        #expect(origin.log.requests.allSatisfy { $0.auth == "-" })
        let listed = try user.succeed("credential", "list")
        #expect(listed.contains("rejected at the KDC (negotiate, realm \"CORP.TEST\")"), "\(listed)")
        #expect(try explain(user, origin.url).contains("the KDC: credential \"work\" was rejected here"))

        // Another password is another attempt.
        try enroll(user, password: KerberosRealm.password)
        let seen = try poll {
            let seen = try second.get(origin.url)
            return seen.status == 200 ? seen : nil
        }
        #expect(seen?.text == "\(Self.principal) 0")
        #expect(realm.logOns("PREAUTH_FAILED").count == 1)
    }

    @Test func theFirstRejectionIsReported() throws {
        let origin = try BindingKerberosOrigin(realm)
        let proxy = try serve(try user(at: origin.url, password: "wrong"))
        let seen = try proxy.get(origin.url)
        #expect(
            seen.status == 401 && seen.proxyStatus.contains("the KDC rejected the password of \(Self.principal)"),
            "\(seen.proxyStatus)")
    }

    /// A new ticket is obtained before the old one expires, and requests do not wait for it.
    @Test func aTicketIsRenewedBeforeItExpires() throws {
        try realm.limitTickets(toSeconds: 8)
        let origin = try BindingKerberosOrigin(realm)
        let proxy = try serve(try user(at: origin.url))
        let isRenewed = try poll {
            let seen = try proxy.get(origin.url)
            #expect(seen.status == 200, "\(seen.said)\(seen.proxyStatus)")
            return realm.logOns("ISSUE").count >= 3 ? true : nil
        }
        #expect(isRenewed == true)
    }

    /// The password is not known to be wrong, so it is tried again.
    @Test func aKDCThatIsUnreachableIsNoRejection() throws {
        let origin = try BindingKerberosOrigin(realm)
        let proxy = try serve(try user(at: origin.url))
        realm.stop()
        let seen = try proxy.get(origin.url)
        #expect(seen.status == 401 && seen.proxyStatus.contains("no KDC responds"), "\(seen.proxyStatus)")
        try realm.restart()
        #expect(try proxy.get(origin.url).status == 200)
    }

    // MARK: Keytab

    /// The user's own ticket is not used in place of the principal that the line names.
    @Test func aKeytabObtainsTheTicket() throws {
        let origin = try BindingKerberosOrigin(realm)
        let user = try Countersign()
        try user.allow("\(origin.url) answer=negotiate credential=batch")
        try realm.kinit(cache: "tickets")
        let stored = try user.run(
            "credential", "set", "batch", "--principal", Self.robot, "--keytab", realm.robotKeytab,
            environment: realm.environment(cache: "tickets"))
        #expect(stored.status == 0, "\(stored.said)")
        // The vault has the keys.
        try FileManager.default.removeItem(atPath: realm.robotKeytab)
        let proxy = try serve(user)
        let seen = try proxy.get(origin.url)
        #expect(seen.text == "\(Self.robot) 0", "\(seen.said)\(seen.proxyStatus)")
        #expect(try user.succeed("credential", "list").contains("batch  keytab  \(Self.robot)"))
    }

    @Test func aKeytabWithoutThePrincipalIsRefused() throws {
        let user = try Countersign()
        let refused = try user.run(
            "credential", "set", "--principal", Self.principal, "--keytab", realm.robotKeytab,
            environment: realm.environment(cache: "tickets"))
        #expect(refused.status == 1 && refused.error.contains("has no key of \(Self.principal)"), "\(refused.said)")
        #expect(refused.error.contains("it has keys of \(Self.robot)"), "\(refused.said)")
        let missing = try user.run(
            "credential", "set", "--principal", Self.principal, "--keytab", "/dev/null/none",
            environment: realm.environment(cache: "tickets"))
        #expect(missing.status == 1 && missing.error.contains("Not a directory"), "\(missing.said)")
    }
}
