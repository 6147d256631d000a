// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignSitePolicy
import CountersignVault

extension Home {
    // MARK: Files that are not read

    /// Warnings about the files of `AllowedSites` that are not read because of their names.
    package var ignoredSiteFiles: [Diagnostic] {
        ignored(in: Self.sitesFolder, suffix: ".sites") { path in
            "mv \(ShellWord.quoted(path)) \(ShellWord.quoted(path.withoutExtension + ".sites"))"
        }
    }

    /// Warnings about the files of `Certs/anchors` that are not read because of their names.
    package var ignoredAnchorFiles: [Diagnostic] {
        ignored(in: Self.anchorsFolder, suffix: ".pem") { path in
            "countersign trust anchor add \(ShellWord.quoted(path)) && rm \(ShellWord.quoted(path))"
        }
    }

    private func ignored(in folder: String, suffix: String, command: (String) -> String) -> [Diagnostic] {
        // A folder that cannot be read is reported when its files are.
        ((try? ignoredFiles(in: folder, suffix: suffix)) ?? []).map { file in
            Diagnostic(
                "\(file.name) is ignored, because its name does not end in \(suffix)",
                hint: "`\(command(file.path))`")
        }
    }

    // MARK: Lines without effect

    /// Remarks on one line. A vault that needs a passphrase is not opened for them, but `server` may have it open.
    package func remarks(on rule: SiteRule, server: VaultServer? = nil) throws -> [Diagnostic] {
        var credentials: Set<String>? = []
        var identities: Set<String>? = []
        if try vault.exists() {
            let opened = try vault.status().key == .file ? vault.open { throw CountersignError(.refused, "") } : nil
            credentials = opened.map { Set($0.contents.credentialNames) }
            identities = opened?.contents.identityNames
        }
        if let server, server.offers(ListNames.self), let names = try? server.perform(ListNames()) {
            (credentials, identities) = (names.credentials, names.identities)
        }
        return rule.remarks(credentials: credentials, identities: identities).map(Diagnostic.init)
    }
}

extension VaultContents {
    /// The names of all identities, complete or not.
    var identityNames: Set<String> { Set(identityKeys.keys).union(tokenKeys.keys).union(plannedNames) }
}

extension Diagnostic {
    package init(_ remark: SiteRemark) { self.init(remark.message, hint: remark.hint) }
}

extension String {
    /// The path without the last extension of its file name.
    fileprivate var withoutExtension: String {
        guard let dot = lastIndex(of: "."), dot > (lastIndex(of: "/") ?? startIndex) else { return self }
        return String(self[..<dot])
    }
}
