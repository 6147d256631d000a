// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import Testing

@testable import CountersignCLI

/// The arguments of bwrap for `exec --sandbox`. bwrap applies them in their order.
@Suite struct SandboxPlanTests {
    private static let place = SandboxPlan.Surroundings(
        system: [
            SandboxPlan.SystemFolder(path: "/bin", link: "usr/bin"), SandboxPlan.SystemFolder(path: "/usr"),
            SandboxPlan.SystemFolder(path: "/etc"),
        ],
        personFolders: ["/home/jdoe"], homes: ["/home/jdoe/.config/countersign"],
        workingFolder: "/home/jdoe/project", executable: "/usr/bin/countersign")

    /// A place that differs from the usual one.
    private func place(_ change: (inout SandboxPlan.Surroundings) -> Void) -> SandboxPlan.Surroundings {
        var place = Self.place
        change(&place)
        return place
    }

    private func arguments(_ plan: SandboxPlan) throws -> [String] {
        try plan.arguments(running: ["true"], filter: 9)
    }

    /// The place of `option` with these values among `arguments`.
    private func index(_ words: String..., in arguments: [String]) throws -> Int {
        let found = arguments.indices.first { arguments[$0...].starts(with: words) }
        return try #require(found, "\(words) in \(arguments)")
    }

    @Test func nothingButTheNeededIsShown() throws {
        let arguments = try arguments(SandboxPlan(surroundings: Self.place))
        let sources = arguments.indices.filter { ["--bind", "--ro-bind"].contains(arguments[$0]) }
            .map { arguments[$0 + 1] }
        #expect(sources == ["/usr", "/etc", "/home/jdoe/project", "/usr/bin/countersign"])
        #expect(arguments.suffix(2) == ["--", "true"])
    }

    @Test func rootHasNoCapabilityAndCannotChangeTheKernel() throws {
        let arguments = try arguments(SandboxPlan(surroundings: Self.place))
        _ = try index("--unshare-all", "--unshare-user", in: arguments)
        _ = try index("--cap-drop", "ALL", in: arguments)
        let proc = try index("--proc", "/proc", in: arguments)
        #expect(try index("--ro-bind-try", "/proc/sys", "/proc/sys", in: arguments) > proc)
    }

    @Test func workingFolderIsAboveTheEmptyHomeFolder() throws {
        let arguments = try arguments(SandboxPlan(surroundings: Self.place))
        let empty = try index("--tmpfs", "/home/jdoe", in: arguments)
        let folder = try index("--bind", "/home/jdoe/project", "/home/jdoe/project", in: arguments)
        #expect(empty < folder)
        _ = try index("--chdir", "/home/jdoe/project", in: arguments)
    }

    @Test func aHomeInAShownFolderIsHiddenButNotTheFilesOfTheEnvironment() throws {
        let home = "/home/jdoe/project/home"
        let plan = SandboxPlan(surroundings: place { $0.homes.append(home) }, shown: ["\(home)/Certs/bundle.pem"])
        let arguments = try arguments(plan)
        let folder = try index("--bind", "/home/jdoe/project", in: arguments)
        let hidden = try index("--tmpfs", home, in: arguments)
        let shown = try index("--ro-bind", "\(home)/Certs/bundle.pem", in: arguments)
        #expect(folder < hidden && hidden < shown)
        #expect(!arguments.contains("/home/jdoe/.config/countersign"))
    }

    @Test func aHomeBelowAFolderOfTheOptionsIsHidden() throws {
        let arguments = try arguments(SandboxPlan(surroundings: Self.place, readable: ["/home/jdoe/.config"]))
        let shown = try index("--ro-bind", "/home/jdoe/.config", in: arguments)
        #expect(try index("--tmpfs", "/home/jdoe/.config/countersign", in: arguments) > shown)
    }

    @Test func aFolderComesBeforeThoseInItWithTheirOwnRights() throws {
        let plan = SandboxPlan(
            surroundings: Self.place, readable: ["/home/jdoe/project/vendor", "/srv/data"],
            writable: ["/srv/data/out"])
        let arguments = try arguments(plan)
        #expect(
            try index("--bind", "/home/jdoe/project", in: arguments)
                < index("--ro-bind", "/home/jdoe/project/vendor", in: arguments))
        #expect(
            try index("--ro-bind", "/srv/data", in: arguments) < index("--bind", "/srv/data/out", in: arguments))
    }

    @Test(arguments: [
        "/", "/home", "/home/jdoe", "/tmp", "/run", "/var", "/usr", "/etc", "/proc/1", "/dev/shm",
        "/home/jdoe/.config/countersign", "/home/jdoe/.config/countersign/run",
    ])
    func foldersThatASandboxNeverShowsAreRefused(_ path: String) throws {
        #expect(throws: CountersignError.self) {
            try arguments(SandboxPlan(surroundings: place { $0.workingFolder = path }))
        }
        #expect(throws: CountersignError.self) {
            try arguments(SandboxPlan(surroundings: Self.place, readable: [path]))
        }
        #expect(throws: CountersignError.self) {
            try arguments(SandboxPlan(surroundings: Self.place, writable: [path]))
        }
    }

    @Test func aNameThatOnlyBeginsLikeAFolderIsNotInIt() throws {
        #expect(!SandboxPlan.isInside("/home/jdoe2", "/home/jdoe"))
        _ = try arguments(SandboxPlan(surroundings: place { $0.workingFolder = "/home/jdoe2/project" }))
    }

    @Test func variablesOfTheSessionAndOurOwnAreRemoved() {
        let all = [
            "PATH": "/bin", "SSH_AUTH_SOCK": "/tmp/agent", "KRB5CCNAME": "FILE:/tmp/krb5cc_0", "PWD": "/old",
            "XDG_RUNTIME_DIR": "/run/user/0", "COUNTERSIGN_SAVED_http_proxy": "http://me:secret@proxy:1",
        ]
        #expect(SandboxEnvironment.visible(all, in: "/new") == ["PATH": "/bin", "PWD": "/new"])
    }

    /// Copies of `.curlrc` and the like may have passwords.
    @Test func configurationOfThePersonIsNotFoundForTheFilesOfClients() {
        let all = ["HOME": "/home/jdoe", "CURL_HOME": "/a", "COUNTERSIGN_SAVED_CURL_HOME": "/b", "PATH": "/bin"]
        #expect(SandboxEnvironment.withoutConfiguration(all) == ["PATH": "/bin"])
    }

    @Test(arguments: [
        (SandboxFailure.KernelSettings(most: 0), "max_user_namespaces"),
        (SandboxFailure.KernelSettings(most: 9, permitsUnprivileged: 0), "unprivileged_userns_clone"),
        (SandboxFailure.KernelSettings(most: 9, permitsUnprivileged: 1, isRestrictedByAppArmor: 1), "AppArmor"),
        (SandboxFailure.KernelSettings(most: 9), "the reason above"),
    ])
    func failureNamesTheSettingThatForbidsNamespaces(_ settings: SandboxFailure.KernelSettings, _ word: String) {
        #expect(settings.diagnostic.message.contains(word))
    }

    @Test func missingBwrapIsNamedWithItsPackage() throws {
        let error = #expect(throws: CountersignError.self) { try SandboxFailure.bwrap(in: "/nonexistent:.") }
        #expect(error?.hint?.contains("bubblewrap") == true)
    }
}
