// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignAddresses
import CountersignAudit
import CountersignCryptography
import CountersignHome

/// `countersign audit`.
struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Verify, show or export the audit of `countersign serve --audit FILE`.",
        subcommands: [Verify.self, Show.self, Export.self])
}

/// `--home` and `--key`, for commands that verify an audit.
struct AuditKeyOption: ParsableArguments {
    /// The public key of the home's audits, which `serve` writes.
    static let fileName = "audit.pem"
    private static let longestBytes = 4096

    @OptionGroup var homeOption: HomeOption

    @Option(
        help: ArgumentHelp(
            "The public key that verifies the signatures, in PEM. (default: \(AuditKeyOption.fileName) in the home)",
            valueName: "file"))
    var key: String?

    /// Nil if the home has none.
    func publicKey() throws -> AuditPublicKey? {
        guard let key else {
            let file = try homeOption.located().file(Self.fileName)
            guard let bytes = try file.readIfThere(upTo: Self.longestBytes) else {
                Console.warning(
                    "the home has no public key, so that no signature is verified", hint: "--key FILE names the key")
                return nil
            }
            return try Self.key(bytes, file.path)
        }
        return try Self.key(try HomeFile(path: key).read(upTo: Self.longestBytes), key)
    }

    private static func key(_ bytes: [UInt8], _ path: String) throws -> AuditPublicKey {
        guard let key = AuditPublicKey(pem: String(decoding: bytes, as: UTF8.self)) else {
            throw CountersignError(
                .configuration, "\(path) is not a public key on P-256 in PEM",
                hint: "`countersign serve --audit FILE` writes it to \(fileName) in its home")
        }
        return key
    }
}

extension AuditCommand {
    struct Verify: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify",
            abstract: "Find out whether an audit was changed: exit status 0 if not, 1 if it was.",
            discussion: """
                Reads the files in order: after rotations, the oldest first. Finds the first record that was changed, \
                removed, inserted or moved, and says in which line it is and which record. Says up to which record the \
                audit is signed: whoever can write the file can make the records after that anew, and can remove them.

                A last line that is cut, because the server was killed, is no fault.

                EXAMPLES:
                  countersign audit verify ~/audit.jsonl
                  countersign audit verify ~/audit.jsonl.2 ~/audit.jsonl.1 ~/audit.jsonl
                  countersign audit verify --key audit.pem --json audit.jsonl | jq .last
                """)

        @OptionGroup var keyOption: AuditKeyOption
        @OptionGroup var output: JSONOption

        @Argument(help: ArgumentHelp("The files of the audit, the oldest first.", valueName: "file"))
        var files: [String]

        func run() throws {
            var verifier = AuditVerifier(key: try keyOption.publicKey())
            for file in files { try verifier.read(path: file) }
            let report = verifier.finished()
            if output.json {
                try Console.result(json: report)
            } else {
                Console.result(report.lines.joined(separator: "\n") + "\n")
            }
            if !report.isIntact { throw ExitCode.failure }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show an audit in lines for people.",
            discussion: """
                Prints a line for each record: the local time, the number, the result, the status, the request, which \
                credential was used, and by whom. Ends before the first record that was changed, removed, inserted or \
                moved, with exit status 1.

                EXAMPLES:
                  countersign audit show ~/audit.jsonl
                  countersign audit show --site '*.corp.example' --json ~/audit.jsonl | jq -r .program | sort | uniq -c
                """)

        @OptionGroup var keyOption: AuditKeyOption
        @OptionGroup var output: JSONOption

        @Option(
            help: ArgumentHelp(
                "Only uses for this host, or for this HOST:PORT; *.corp.example for the hosts below it.",
                valueName: "site"))
        var site: String?

        @Argument(help: ArgumentHelp("The files of the audit, the oldest first.", valueName: "file"))
        var files: [String]

        func validate() throws { _ = try filter() }

        private func filter() throws -> LogFilter.Site? {
            do throws(HostNameError) {
                return try site.map { text throws(HostNameError) in try LogFilter.Site(parsing: text) }
            } catch {
                throw ValidationError("--site: \(error.detail)")
            }
        }

        func run() throws {
            let format: AuditOutput.Format = output.json ? .jsonl : .text
            let output = try filter().map { site in
                AuditOutput(format) { site.matches(AuditCommand.authority(of: $0)) }
            }
            try AuditCommand.print(files, output ?? AuditOutput(format), key: try keyOption.publicKey())
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Write an audit for another program.",
            discussion: """
                jsonl writes the lines of the audit. ocsf writes an event of OCSF's class Authentication (3002) for \
                each use. Ends before the first record that was changed, removed, inserted or moved, \
                with exit status 1.

                EXAMPLES:
                  countersign audit export --format ocsf ~/audit.jsonl > events.jsonl
                """)

        enum Format: String, CaseIterable, ExpressibleByArgument {
            case jsonl
            case ocsf
        }

        @OptionGroup var keyOption: AuditKeyOption

        @Option(help: "The format: jsonl or ocsf. (default: jsonl)")
        var format: Format = .jsonl

        @Argument(help: ArgumentHelp("The files of the audit, the oldest first.", valueName: "file"))
        var files: [String]

        func run() throws {
            let output = AuditOutput(format == .jsonl ? .jsonl : .ocsf)
            try AuditCommand.print(files, output, key: try keyOption.publicKey())
        }
    }

    /// `host:port` of `scheme://host:port`.
    private static func authority(of site: String) -> Substring {
        site.firstRange(of: "://").map { site[$0.upperBound...] } ?? site[...]
    }

    /// Prints the records up to the first fault, which it reports.
    private static func print(_ files: [String], _ output: AuditOutput, key: AuditPublicKey?) throws {
        var verifier = AuditVerifier(key: key)
        var text = ""
        var hasReader = true
        for file in files where hasReader {
            try verifier.read(path: file) { record, line in
                text += output.text(of: record, line) ?? ""
                guard text.utf8.count > 64 << 10 else { return true }
                Console.result(unchanged: text)
                text = ""
                hasReader = LogPrinter.hasReader
                return hasReader
            }
        }
        Console.result(unchanged: text)
        let report = verifier.finished()
        if let fault = report.fault {
            throw AuditFaultFound(fault: fault)
        }
        if report.cutBytes > 0 { Console.warning("the last line is cut after \(report.cutBytes) bytes") }
    }
}

/// An audit that was to be printed has a fault.
private struct AuditFaultFound: DiagnosableError {
    let fault: AuditFault

    var detail: String { "the audit is damaged: \(fault.text)" }
    var hint: String? { "what follows is not shown; `countersign audit verify FILE` says what is intact" }
}
