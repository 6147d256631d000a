// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// `git`, run by `countersign exec`, with origins that challenge.
@Suite struct GitTests {
    private static let made = Result { try Repositories() }

    /// The URL of a repository.
    enum Place: String, CaseIterable, Sendable {
        case basic, ntlm, negotiate, certificate
    }

    /// One bare repository for each kind of challenge, served as plain files, and for NTLM also by `git http-backend`.
    final class Repositories: Sendable {
        let origins: Origins
        let head: String
        let user: Countersign

        init() throws {
            origins = try Origins.shared
            let scratch = try TemporaryFolder("git")
            let script = """
                set -e
                git init -q -b main source; cd source
                git config user.email jdoe@test.localhost; git config user.name jdoe
                head -c 300000 /dev/urandom > blob; echo hello > file; git add .; git commit -q -m first
                git tag one; cd ..; git clone -q --bare source bare.git
                git -C bare.git update-server-info; git -C bare.git config http.receivepack true
                for root in "$@"; do mkdir -p "$root"; cp -r bare.git "$root/project.git"; chmod -R a+rX "$root"; done
                git -C source rev-parse HEAD
                """
            let roots = ["\(origins.apache.root)/basic", origins.ntlm.root, origins.negotiate.root, origins.nginx.root]
            let done = try Command.run(
                "/bin/sh", ["-c", script, "sh"] + roots, environment: ["HOME": scratch.path], folder: scratch.path,
                in: scratch)
            guard done.status == 0 else { throw HarnessError("git: \(done.said)") }
            head = String(done.output.split(separator: "\n").last ?? "")
            user = try Countersign()
            try user.enroll()
            try user.importIdentity("laptop")
            for place in Place.allCases {
                try user.allow(site(place) + (place == .ntlm || place == .negotiate ? " domain=ACME" : ""))
            }
        }

        func site(_ place: Place) -> String {
            switch place {
            case .basic: "https://basic.test.localhost:\(origins.apache.httpsPort)"
            case .ntlm: "https://ntlm.test.localhost:\(origins.ntlm.port)"
            case .negotiate: "https://negotiate.test.localhost:\(origins.negotiate.port)"
            case .certificate: "https://cert.test.localhost:\(origins.nginx.mutual13Port)"
            }
        }

        func url(_ place: Place) -> String {
            site(place) + (place == .basic ? "/basic" : "") + "/project.git"
        }
    }

    @Test(arguments: Place.allCases)
    func cloneHasTheSameHead(_ place: Place) throws {
        let repositories = try Self.made.get()
        let scratch = try TemporaryFolder("clone")
        let done = try repositories.user.run(
            "exec", "--", "git", "clone", "-q", repositories.url(place), scratch.file("copy"))
        #expect(done.status == 0, "\(done.said)")
        let head = try Command.run(
            Tool.path("git"), ["-C", scratch.file("copy"), "rev-parse", "HEAD"], in: scratch)
        #expect(head.output == repositories.head + "\n", "\(head.said)")
        #expect(done.output.isEmpty && done.error.isEmpty, "\(done.said)")
    }

    @Test func pushOverSmartHTTPWorksWithNTLM() throws {
        let repositories = try Self.made.get()
        let scratch = try TemporaryFolder("push")
        let url = repositories.site(.ntlm) + "/git/project.git"
        let script = """
            set -e
            git clone -q "$0" copy; cd copy
            git config user.email jdoe@test.localhost; git config user.name jdoe
            head -c 3000000 /dev/urandom > more; git add .; git commit -q -m second
            git push -q origin HEAD:refs/heads/pushed
            git rev-parse HEAD; git ls-remote origin refs/heads/pushed
            """
        let done = try repositories.user.run(
            "exec", "--", "env", "-C", scratch.path, "sh", "-c", script, url)
        let lines = done.output.split(separator: "\n")
        #expect(done.status == 0 && lines.count == 2, "\(done.said)")
        #expect(lines.last == "\(lines.first ?? "-")\trefs/heads/pushed", "\(done.said)")
        let posts = repositories.origins.ntlm.log.requests.filter { $0.method == "POST" && $0.status == 200 }
        #expect(posts.contains { ($0.received ?? 0) > 0 && $0.user == "ACME\\jdoe" })
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
