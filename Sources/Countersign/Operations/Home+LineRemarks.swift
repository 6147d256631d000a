// SPDX-License-Identifier: Apache-2.0

package import CountersignHome
import CountersignSitePolicy
import CountersignVault

extension Home {
    /// Remarks on one line. A vault that needs a passphrase is not opened for them, but `server` may have it open.
    package func remarks(on added: SiteFiles.Added, server: VaultServer? = nil) throws -> [Diagnostic] {
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
        let remarks =
            switch added {
            case .site(let rule, let list):
                list.remarks(on: rule, credentials: credentials, identities: identities)
                    + list.scriptRemarks(at: rule.location, isScript: Self.isScript)
            case .credential(let line, let list):
                line.remarks(credentials: credentials, in: list)
                    + list.scriptRemarks(at: line.location, isScript: Self.isScript)
            }
        return remarks.map(Diagnostic.init)
    }
}
