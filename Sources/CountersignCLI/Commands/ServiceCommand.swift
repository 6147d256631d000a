// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome
import CountersignParents
import FoundationEssentials

/// `countersign service`.
struct ServiceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "service",
        abstract: "Run the proxy as a systemd service of your user, from each login on.",
        discussion: """
            The unit countersign.service runs `countersign serve`. The Debian package has it already; elsewhere, \
            `countersign service install` writes it. The options of `serve` are in serve.env in the home, as \
            variables such as COUNTERSIGN_PARENT.

            --dry-run prints the commands, and runs none.
            """,
        subcommands: [
            ServiceInstallCommand.self, ServiceUninstallCommand.self, Start.self, Stop.self, Status.self, Logs.self,
        ])

    struct Start: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "start",
            abstract: "Start the service.",
            discussion: """
                A service that runs gets new options when it is stopped and started.

                EXAMPLES:
                  countersign service start
                """)

        @OptionGroup var dryRun: ServiceDryRun

        func run() throws { try dryRun.run([["start", ServiceUnit.name]]) }
    }

    struct Stop: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "stop",
            abstract: "Stop the service until it is started or you log in again.",
            discussion: """
                EXAMPLES:
                  countersign service stop
                """)

        @OptionGroup var dryRun: ServiceDryRun

        func run() throws { try dryRun.run([["stop", ServiceUnit.name]]) }
    }

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status",
            abstract: "Show whether the service runs: exit status 0 if it does, 1 if not.",
            discussion: """
                EXAMPLES:
                  countersign service status
                """)

        @OptionGroup var dryRun: ServiceDryRun

        func run() throws {
            let words = Systemctl.command(["--no-pager", "status", ServiceUnit.name])
            if dryRun.dryRun { return ServiceDryRun.show(words) }
            try Systemctl.check()
            guard try ToolProcess.run(words, sharesErrors: true).status == 0 else { throw ExitCode.failure }
        }
    }

    struct Logs: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "logs",
            abstract: "Show the messages of the service, from systemd's journal.",
            discussion: """
                EXAMPLES:
                  countersign service logs --lines 20
                  countersign service logs --follow
                """)

        @OptionGroup var dryRun: ServiceDryRun

        @Flag(name: [.long, .customShort("f")], help: "Wait for more messages.")
        var follow = false

        @Option(help: ArgumentHelp("Show the last messages, at most this many.", valueName: "n"))
        var lines = 100

        func validate() throws {
            guard (0...1_000_000).contains(lines) else {
                throw ValidationError("--lines must be 0 to 1000000, not \(lines)")
            }
        }

        func run() throws {
            let words =
                ["journalctl", "--user", "--no-pager", "--unit", ServiceUnit.name, "--lines", String(lines)]
                + (follow ? ["--follow"] : [])
            if dryRun.dryRun { return ServiceDryRun.show(words) }
            guard try ToolProcess.run(words, sharesErrors: true).status == 0 else { throw ExitCode.failure }
        }
    }
}

/// `--dry-run` of the commands of `service`.
struct ServiceDryRun: ParsableArguments {
    @Flag(help: "Print what would be written and run, and do nothing.")
    var dryRun = false

    static func show(_ words: [String]) { Console.result(words.joined(separator: " ") + "\n") }

    /// Prints and runs `systemctl --user` with each of the words.
    func run(_ commands: [[String]]) throws {
        if !dryRun { try Systemctl.check() }
        for words in commands {
            Self.show(Systemctl.command(words))
            if !dryRun { try Systemctl.run(words) }
        }
    }
}

/// `countersign service install`.
struct ServiceInstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Write the service's unit, and start it at each login.",
        discussion: """
            Writes ~/.config/systemd/user/countersign.service, in $XDG_CONFIG_HOME if that is set, for this program \
            and this home, and enables it. `countersign service start` starts it now. It starts at the first login of \
            your user and ends with the last session; `loginctl enable-linger` lets it run without one.

            With --parent or --no-proxy, writes them to serve.env in the home.

            EXAMPLES:
              countersign service install --dry-run
              countersign service install --parent http://proxy.corp.example:8080
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var dryRun: ServiceDryRun

    @Option(help: ArgumentHelp("Write this --parent of `serve` to serve.env; may be repeated.", valueName: "parent"))
    var parent: [String] = []

    @Option(help: ArgumentHelp("Write this --no-proxy of `serve` to serve.env.", valueName: "hosts"))
    var noProxy: String?

    @Flag(help: "Replace a unit or a serve.env that has other contents.")
    var replace = false

    func run() throws {
        let environment = ProcessInfo.processInfo.environment
        _ = try ParentSettings(parents: parent, noProxy: noProxy)
        let home = try dryRun.dryRun ? homeOption.located() : homeOption.locatedOrNew()
        let unit = try ServiceUnit(home, environment: environment)
        let file = try ServiceUnit.file(environment)
        let options: [(name: String, value: String)] =
            (parent.isEmpty ? [] : [("parent", parent.joined(separator: ","))])
            + (noProxy.map { [("no-proxy", $0)] } ?? [])
        let settings =
            options.isEmpty
            ? nil
            : ServeEnvironment(options: options).text(origin: "written by `countersign service install`", home: home)
        let texts = [(file, unit.text)] + (settings.map { [(ServeEnvironment.file(of: home), $0)] } ?? [])
        if !dryRun.dryRun { try Systemctl.check() }
        for (file, text) in texts { try check(file, text, unit) }
        for (file, text) in texts {
            if dryRun.dryRun {
                Console.result("\(file.path):\n\(text)\n")
            } else {
                try file.replace(with: Array(text.utf8))
                Console.result("\(file.path): written\n")
            }
        }
        try dryRun.run([["daemon-reload"], ["enable", ServiceUnit.name]])
        if !dryRun.dryRun { Console.log("hint", "`countersign service start` starts it now") }
    }

    private func check(_ file: HomeFile, _ text: String, _ unit: ServiceUnit) throws {
        guard !replace, let present = try file.readIfThere(upTo: 1 << 20), present != Array(text.utf8),
            !ServiceUnit.isOwn(present) || unit.isChanged(present)
        else { return }
        throw CountersignError(
            .nameInUse, "\(file.path) is there already, with other contents; nothing was written",
            hint: "compare it with `countersign service install --dry-run --replace`, and pass --replace")
    }
}

/// `countersign service uninstall`.
struct ServiceUninstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Stop the service, and remove the unit that `countersign service install` has written.",
        discussion: """
            Leaves the home, with serve.env, and the unit of the Debian package alone.

            EXAMPLES:
              countersign service uninstall
            """)

    @OptionGroup var dryRun: ServiceDryRun

    func run() throws {
        let file = try ServiceUnit.file(ProcessInfo.processInfo.environment)
        guard let present = try file.readIfThere(upTo: 1 << 20) else {
            let isPackaged = HomeFile(path: ServiceUnit.packaged).isRegular
            throw CountersignError(
                .unknownName, "there is no unit \(file.path)",
                hint: isPackaged
                    ? "the unit is the Debian package's: systemctl --user disable --now \(ServiceUnit.name)"
                    : "`countersign service install` writes it")
        }
        guard ServiceUnit.isOwn(present) else {
            throw CountersignError(
                .refused, "\(file.path) was not written by `countersign service install`; nothing was removed",
                hint: "if it is yours, remove it: systemctl --user disable --now \(ServiceUnit.name) && rm \(file.path)"
            )
        }
        try dryRun.run([["disable", "--now", ServiceUnit.name]])
        if dryRun.dryRun {
            Console.result("rm \(file.path)\n")
        } else {
            try file.remove()
            Console.result("\(file.path): removed\n")
        }
        try dryRun.run([["daemon-reload"]])
    }
}
