// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
import CountersignCertificates
import CountersignClientSetup
import CountersignCryptography
import CountersignHome
import CountersignParents
import Glibc

/// What `countersign setup` finds on the machine.
struct SetupSurvey: Equatable {
    /// The settings of another proxy.
    var file: String?
    /// Settings of another proxy that this user may not read.
    var unreadableFile: String?
    /// Where `migrate` writes its options.
    var options = ServeEnvironment.name
    /// The proxy of the desktop, as it is shown.
    var desktop: String?
    /// The proxy and the exceptions of the variables.
    var variables: (parent: String, noProxy: String?)?
    /// The trust stores, such as `system`.
    var stores: [String] = []
    /// Whether systemd runs an instance for the user.
    var hasSystemd = false

    static func == (left: Self, right: Self) -> Bool {
        left.file == right.file && left.desktop == right.desktop && left.variables?.parent == right.variables?.parent
            && left.variables?.noProxy == right.variables?.noProxy && left.stores == right.stores
            && left.hasSystemd == right.hasSystemd
    }

    init() {}

    init(home: Home, environment: [String: String]) throws {
        let user = environment["HOME"] ?? ""
        let base = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "\(user)/.config"
        let found = ["\(base)/px/px.ini", "\(base)/px.ini", "\(base)/cntlm.conf", "/etc/cntlm.conf"].first {
            HomeFile(path: $0).isRegular
        }
        if let found, access(found, R_OK) != 0 { unreadableFile = found } else { file = found }
        options = ServeEnvironment.file(of: home).path
        let example = try AbsoluteURL(parsing: "https://www.example.com").origin
        func hop(_ desktop: String, _ environment: [String: String]) -> String? {
            guard
                let settings = try? ParentSettings(
                    parents: ["system"], environment: environment, desktop: { desktop }),
                let plan = try? settings.plan(for: example)
            else { return nil }
            if let script = plan.scripts.first { return "the script \(script)" }
            guard case .candidate(let candidate)? = plan.steps.first, let parent = candidate.hop.parent,
                // This proxy itself, perhaps, or another on this machine.
                !parent.host.isLoopback
            else { return nil }
            return parent.description
        }
        desktop = hop(ParentOptions.desktopSettings(), [:])
        if desktop == nil, let parent = hop("", environment) {
            variables = (parent, ["no_proxy", "NO_PROXY"].compactMap { environment[$0] }.first { !$0.isEmpty })
        }
        let layout = try StoreLayout.ofThisMachine(environment: environment, hasTerminal: Confirmation.hasTerminal)
        var kinds: [String] = []
        for step in TrustInstaller(home: home, layout: layout).steps(to: .absent(nil), in: [])
        where !kinds.contains(step.kind.rawValue) {
            kinds.append(step.kind.rawValue)
        }
        stores = kinds
        hasSystemd = (try? Systemctl.check()) != nil
    }
}

/// The commands of `countersign setup`, by the answers of the person.
struct SetupPlan {
    /// A command of this program.
    struct Step: Equatable {
        let arguments: [String]

        /// As a person types it.
        var text: String {
            let command = (["countersign"] + arguments.map { $0.hasPrefix("--") ? $0 : ShellWord.quoted($0) }).joined(
                separator: " ")
            return String(PrintedCommand.complete("`\(command)`").dropFirst().dropLast())
        }

        /// With this program's path and the home.
        func words(_ home: Home) throws(CountersignError) -> [String] {
            let executable = try ServiceUnit(home, environment: [:]).executable
            guard !["start"].contains(arguments.last ?? "") else { return [executable] + arguments }
            return [executable] + arguments + ["--home", home.path]
        }
    }

    private(set) var steps: [Step] = []
    /// What cannot be done here.
    private(set) var remarks: [String] = []

    /// `asks` returns whether the answer to a question is yes.
    init(_ survey: SetupSurvey, asks: (String) -> Bool) {
        var parents: [String] = []
        if let file = survey.unreadableFile {
            let command = "sudo cat \(ShellWord.quoted(file)) | countersign migrate -"
            remarks.append("\(file) may not be read by your user; this takes it over: \(command)")
        }
        if let file = survey.file {
            if asks("Take over the company proxy in \(file)?") { steps.append(Step(arguments: ["migrate", file])) }
        } else if let desktop = survey.desktop {
            if asks("Use the company proxy of the desktop's settings, \(desktop)?") {
                parents = ["--parent", "system"]
            }
        } else if let (parent, noProxy) = survey.variables {
            if asks("Use the company proxy of the environment, \(parent)?") {
                parents = ["--parent", parent] + (noProxy.map { ["--no-proxy", $0] } ?? [])
            }
        } else {
            remarks.append("no company proxy was found: connections are direct")
        }
        if survey.stores.isEmpty {
            remarks.append("no trust store was found")
        } else if asks("Trust the local CA in the trust stores (\(survey.stores.joined(separator: ", ")))?") {
            steps.append(Step(arguments: ["ca", "install", "--yes"]))
        }
        if survey.hasSystemd, asks("Start the proxy now and at each login?") {
            steps.append(Step(arguments: ["service", "install"] + parents))
            steps.append(Step(arguments: ["service", "start"]))
            return
        }
        if !survey.hasSystemd { remarks.append("there is no systemd for your user: start the proxy yourself") }
        let serve = Step(arguments: ["serve"] + parents).text
        let hasOptions = steps.contains { $0.arguments.first == "migrate" }
        let prefix = hasOptions ? "set -a; . \(ShellWord.quoted(survey.options)); set +a; " : ""
        remarks.append("the proxy runs with: \(prefix)\(serve)")
    }
}
