// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `countersign`.
struct CountersignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "countersign",
        abstract:
            "A local proxy that answers authentication challenges with what you enrolled, for the sites you list.",
        discussion: """
            A home holds everything: AllowedSites/*.sites (who may be answered), Certs/ (whom to trust, client certificates) \
            and the vault (everything secret). It is --home DIR, else $COUNTERSIGN_HOME, else ~/.config/countersign.

            Every flag may be set as COUNTERSIGN_<FLAG> in the environment, COUNTERSIGN_ACCESS_LOG for --access-log; a flag \
            that is given wins. No secret is taken from arguments or the environment.

            Exit status: 0 done; 1 failed, or the answer is no; 64 wrong use.

            EXAMPLES:
              countersign sites add https://git.corp.example answer=basic
              countersign credential set --user jdoe
              countersign exec -- git clone https://git.corp.example/tools.git
            """,
        version: "0.1.0",
        subcommands: [
            ServeCommand.self, ExecCommand.self, EnvCommand.self, DemoCommand.self, ExplainCommand.self,
            SitesCommand.self,
            CredentialCommand.self, CertificateCommand.self, TrustCommand.self, CACommand.self, VaultCommand.self,
        ])
}
