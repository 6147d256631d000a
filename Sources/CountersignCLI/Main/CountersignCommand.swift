// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `countersign`.
struct CountersignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "countersign",
        abstract: "A local proxy that answers authentication challenges with your credentials, for the sites you list.",
        discussion: """
            All files are in one folder, the home: AllowedSites/*.sites (the sites that may be answered), Certs/ \
            (trust anchors, client certificates) and the vault (all secrets). The home is --home DIR, else \
            $COUNTERSIGN_HOME, else ~/.config/countersign.

            Every flag can also be set in the environment as COUNTERSIGN_<FLAG>: COUNTERSIGN_ACCESS_LOG sets \
            --access-log. A flag on the command line takes precedence. Secrets are never read from arguments or the \
            environment.

            Exit status: 0 on success; 1 on failure, or if the answer is no; 3 while an enrolment is pending; 64 on a \
            usage error.

            EXAMPLES:
              countersign sites add https://git.corp.example answer=basic
              countersign credential set --user jdoe
              countersign exec -- git clone https://git.corp.example/tools.git
            """,
        version: ProductVersion.full,
        subcommands: [
            ServeCommand.self, ExecCommand.self, EnvCommand.self, DemoCommand.self, ExplainCommand.self,
            TestCommand.self, RouteCommand.self, PauseCommand.self, ResumeCommand.self, EnrollCommand.self,
            StatusCommand.self,
            UnenrollCommand.self,
            TokenCommand.self,
            ComplianceCommand.self, WipeCommand.self, SessionCommand.self, ProfileCommand.self, SitesCommand.self,
            CredentialCommand.self, CertificateCommand.self, TrustCommand.self, CACommand.self, VaultCommand.self,
            MigrateCommand.self, LogCommand.self, WatchCommand.self, UICommand.self, ClientsCommand.self,
            ApproveCommand.self,
            AuditCommand.self,
            ServiceCommand.self, SetupCommand.self,
            PACWorkerCommand.self, SandboxDoorCommand.self,
        ])
}
