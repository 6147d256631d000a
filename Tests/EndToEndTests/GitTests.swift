// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// `git`, run by `countersign exec`, with origins that challenge.
@Suite(.waiting) struct GitTests {
    private static let made = Result { try Repositories() }

    /// The URL of a repository.
    enum Place: String, CaseIterable, Sendable {
        case basic, digest, bearer, ntlm, negotiate, kerberos, certificate
    }

    /// One bare repository for each kind of challenge, served as plain files, and for NTLM, Digest and Kerberos also by
    /// `git http-backend`.
    final class Repositories: Sendable {
        let origins: Origins
        let realm: KerberosRealm
        let kerberos: ApacheKerberosOrigin
        let head: String
        let user: Countersign

        init() throws {
            origins = try Origins.shared
            realm = try KerberosRealm(services: ["HTTP/www.test.localhost"])
            kerberos = try ApacheKerberosOrigin(realm)
            let scratch = try TemporaryFolder("git")
            let script = """
                set -e
                git init -q -b main source; cd source
                git config user.email jdoe@test.localhost; git config user.name jdoe
                head -c 300000 /dev/urandom > blob; echo hello > file; git add .; git commit -q -m first
                git tag one; cd ..; git clone -q --bare source bare.git
                git -C bare.git update-server-info; git -C bare.git config http.receivepack true
                for root in "$@"; do mkdir -p "$root"; cp -r bare.git "$root/project.git"; chmod -R a+rwX "$root"; done
                git -C source rev-parse HEAD
                """
            let roots = [
                "\(origins.apache.root)/basic", "\(origins.apache.root)/digest", "\(kerberos.root)/kerberos",
                "\(origins.nginx.root)/token", origins.ntlm.root, origins.negotiate.root, origins.nginx.root,
            ]
            let done = try Command.run(
                "/bin/sh", ["-c", script, "sh"] + roots, environment: ["HOME": scratch.path], folder: scratch.path,
                in: scratch)
            guard done.status == 0 else { throw HarnessError("git: \(done.said)") }
            head = String(done.output.split(separator: "\n").last ?? "")
            user = try Countersign()
            try user.enroll()
            try user.succeed("credential", "set", "api", "--token-stdin", input: NginxOrigin.token)
            try user.importIdentity("laptop")
            for place in Place.allCases { try user.allow("\(site(place)) \(options(place))") }
            try realm.kinit(cache: "tickets")
        }

        private func options(_ place: Place) -> String {
            switch place {
            case .ntlm, .negotiate: "domain=ACME"
            case .bearer: "answer=bearer credential=api"
            case .kerberos: "answer=negotiate"
            case .basic, .digest, .certificate: ""
            }
        }

        /// Runs a command with the user's tickets.
        func exec(_ command: String...) throws -> CommandResult {
            try user.run(["exec", "--"] + command, environment: realm.environment(cache: "tickets"))
        }

        func site(_ place: Place) -> String {
            switch place {
            case .basic: "https://basic.test.localhost:\(origins.apache.httpsPort)"
            case .digest: "https://digest.test.localhost:\(origins.apache.httpsPort)"
            case .bearer: "https://bearer.test.localhost:\(origins.nginx.httpsPort)"
            case .kerberos: kerberos.url
            case .ntlm: "https://ntlm.test.localhost:\(origins.ntlm.port)"
            case .negotiate: "https://negotiate.test.localhost:\(origins.negotiate.port)"
            case .certificate: "https://cert.test.localhost:\(origins.nginx.mutual13Port)"
            }
        }

        func url(_ place: Place) -> String {
            let folder =
                switch place {
                case .basic, .digest, .kerberos: "/\(place)"
                case .bearer: "/token"
                case .ntlm, .negotiate, .certificate: ""
                }
            return site(place) + folder + "/project.git"
        }

        /// The URL of the repository behind `git http-backend`.
        func smartURL(_ place: Place) -> String {
            site(place) + (place == .ntlm ? "" : "/\(place)") + "/git/project.git"
        }
    }

    @Test(arguments: Place.allCases)
    func cloneHasTheSameHead(_ place: Place) throws {
        let repositories = try Self.made.get()
        let scratch = try TemporaryFolder("clone")
        let done = try repositories.exec("git", "clone", "-q", repositories.url(place), scratch.file("copy"))
        #expect(done.status == 0, "\(done.said)")
        let head = try Command.run(
            Tool.path("git"), ["-C", scratch.file("copy"), "rev-parse", "HEAD"], in: scratch)
        #expect(head.output == repositories.head + "\n", "\(head.said)")
        #expect(done.output.isEmpty && done.error.isEmpty, "\(done.said)")
    }

    @Test(arguments: [Place.ntlm, .digest, .kerberos]) func pushOverSmartHTTPWorks(_ place: Place) throws {
        let repositories = try Self.made.get()
        let scratch = try TemporaryFolder("push")
        let script = """
            set -e
            git clone -q "$0" copy; cd copy
            git config user.email jdoe@test.localhost; git config user.name jdoe
            head -c 3000000 /dev/urandom > more; git add .; git commit -q -m second
            git push -q origin HEAD:refs/heads/pushed
            git rev-parse HEAD; git ls-remote origin refs/heads/pushed
            """
        let done = try repositories.exec(
            "env", "-C", scratch.path, "sh", "-c", script, repositories.smartURL(place))
        let lines = done.output.split(separator: "\n")
        #expect(done.status == 0 && lines.count == 2, "\(done.said)")
        #expect(lines.last == "\(lines.first ?? "-")\trefs/heads/pushed", "\(done.said)")
        let (log, user) =
            switch place {
            case .ntlm: (repositories.origins.ntlm.log, "ACME\\jdoe")
            case .kerberos: (repositories.kerberos.log, "jdoe@CORP.TEST")
            default: (repositories.origins.apache.log, "jdoe")
            }
        let pushed = poll {
            log.requests.contains {
                $0.method == "POST" && $0.path?.hasSuffix("/git-receive-pack") == true && $0.status == 200
                    && ($0.received ?? 0) > 3_000_000 && $0.user == user
            } ? true : nil
        }
        #expect(pushed == true, "\(log.requests)")
    }

    @Test func cloneWithoutTheProxyFails() throws {
        let repositories = try Self.made.get()
        let scratch = try TemporaryFolder("refused")
        let done = try Command.run(
            Tool.path("git"), ["clone", "-q", repositories.url(.ntlm), scratch.file("copy")],
            environment: ["GIT_SSL_CAINFO": TestPKI.shared.originAnchor], in: scratch)
        #expect(
            done.status == 128 && done.error.contains("Authentication failed")
                || done.error.contains("could not read Username"), "\(done.said)")
    }
}
