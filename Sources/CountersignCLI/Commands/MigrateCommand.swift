// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import CountersignReporting
import CountersignSitePolicy
import FoundationEssentials
import Glibc

/// `countersign migrate`.
struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Take over the settings of px, cntlm or alpaca.",
        discussion: """
            Reads px.ini, cntlm.conf, or a file with alpaca's variables or command, and takes over the parents, their \
            script, the hosts that are reached directly, the address to listen on, the user and the domain. Prints a \
            line for each setting: what it becomes, or why it is left.

            Writes serve.env in the home, with COUNTERSIGN_PARENT and the like, which the systemd service reads, and \
            adds the parents to AllowedSites/parents.sites, so that they are answered. Prints the `countersign serve` \
            command with the same options. Changes neither the file nor the other proxy, which must be stopped before \
            this one can have its port.

            The vault keeps passwords, not hashes: PassNT, PassLM, PassNTLMv2 and NTLM_CREDENTIALS cannot be used. A \
            password in the file is never printed, and stored in the vault only if you say so.

            EXAMPLES:
              countersign migrate --dry-run /etc/cntlm.conf
              countersign migrate ~/.config/px.ini
              countersign migrate --from alpaca ~/.profile
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @OptionGroup var output: JSONOption

    @Option(
        help: ArgumentHelp("The product: px, cntlm or alpaca. (default: by the file's contents)", valueName: "product"))
    var from: ForeignProduct?

    @Flag(help: "Only show what would be done.")
    var dryRun = false

    @Flag(help: "Store a password in the file in the vault, as the credential `parent`. (default: ask on the terminal)")
    var takePassword = false

    @Flag(help: "Replace a serve.env, or a credential `parent`, that is there already.")
    var replace = false

    @Argument(
        help: ArgumentHelp("px.ini, cntlm.conf, or alpaca's variables; - is standard input.", valueName: "file"))
    var file: String

    private static let limitBytes = 1 << 20

    func run() throws {
        let home = try dryRun ? homeOption.located() : homeOption.locatedOrNew()
        var bytes = try contents()
        defer { bytes.wipe() }
        let plan = try plan(bytes)
        let migration = Migration(plan: plan, home: home, file: shownFile, isInput: isInput, replaces: replace)
        try migration.check()
        let takes = try !dryRun && takesPassword(plan)
        if !output.json { migration.showFindings(takesPassword: takes) }
        let done = try dryRun ? [] : migration.perform(takes ? secrets.input : nil)
        if output.json {
            try Console.result(json: migration.report(isDone: !dryRun, takesPassword: takes))
        } else {
            migration.show(isDone: !dryRun, done)
        }
        migration.advise(isDone: !dryRun, takesPassword: takes)
    }

    private var isInput: Bool { file == "-" }

    private var shownFile: String { isInput ? "standard input" : file }

    private func contents() throws -> [UInt8] {
        if isInput {
            let source = LogSource()
            var bytes: [UInt8] = []
            while case let more = try source.next(), !more.isEmpty, bytes.count <= Self.limitBytes { bytes += more }
            guard bytes.count <= Self.limitBytes else {
                throw CountersignError(
                    .environment, "standard input has more than \(Self.limitBytes) bytes",
                    hint: "write the settings of one product to it")
            }
            return bytes
        }
        if access(file, R_OK) != 0, errno == EACCES {
            throw CountersignError(
                .environment, "\(PrintableText.quote(file)) may not be read by your user",
                hint: "`sudo cat \(ShellWord.quoted(file)) | countersign migrate -`")
        }
        guard let bytes = try HomeFile(path: file).readIfThere(upTo: Self.limitBytes) else {
            throw CountersignError(
                .environment, "there is no file \(PrintableText.quote(file))",
                hint: "cntlm reads /etc/cntlm.conf, and px the px.ini in its own folder or in ~/.config/px")
        }
        return bytes
    }

    private func plan(_ bytes: [UInt8]) throws -> MigrationPlan {
        do throws(ForeignFault) {
            let lines = try ForeignFile.lines(bytes)
            guard let product = from ?? ForeignProduct.detect(lines) else {
                throw ForeignFault([
                    ForeignProblem(
                        0, "the file has no line of px, cntlm or alpaca",
                        hint: "name the product with --from px, --from cntlm or --from alpaca")
                ])
            }
            let path = HomeFile.absolutePath(isInput ? "x" : file) ?? file
            return try MigrationPlan.read(bytes, of: product, in: HomeFile.folder(of: path))
        } catch {
            for problem in error.problems {
                let place = problem.line == 0 ? shownFile : "\(shownFile):\(problem.line)"
                Console.error(Diagnostic("\(place): \(problem.reason)", hint: problem.hint))
            }
            throw ExitCode.failure
        }
    }

    private func takesPassword(_ plan: MigrationPlan) throws -> Bool {
        guard let password = plan.password, let user = plan.credentialUser else { return false }
        if takePassword { return true }
        return Terminal()?.confirms(
            "Store the password in \(shownFile):\(password.line) in the vault, for \(PrintableText.plain(user))?")
            ?? false
    }
}

extension ForeignProduct: ExpressibleByArgument {}
