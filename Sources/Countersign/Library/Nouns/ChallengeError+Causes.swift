// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignSitePolicy
import CountersignVault

extension ChallengeError {
    /// Converts an error of a lower module.
    init(_ error: any Error) {
        switch error {
        case let error as ChallengeError:
            self = error
        case let error as SiteListError:
            let first = error.problems.first
            self.init(
                .listFaulty, error.problems.map(\.description).joined(separator: "; "),
                listLine: first.map { "\($0.file):\($0.line)" }, hint: first?.hint)
            siteProblems = error.problems.map { SiteProblem($0) }
        case let error as VaultError:
            self.init(Self.code(of: error.code), error.detail, hint: error.hint)
        case let error as CountersignError:
            self.init(error.code == .environment ? .homeUnreadable : .homeFaulty, error.detail, hint: error.hint)
        case let error as CertificateError:
            self.init(.certificateFaulty, error.detail)
        default:
            let diagnostic = Diagnostic.all(in: error).first
            self.init(.homeUnreadable, diagnostic?.message ?? "\(error)", hint: diagnostic?.hint)
        }
    }

    private static func code(of code: VaultError.Code) -> Code {
        switch code {
        case .passphraseNeeded, .wrongPassphrase: .vaultLocked
        case .io, .permissions, .locked: .homeUnreadable
        default: .vaultFaulty
        }
    }

    /// The error of a faulty list, with the first of its problems as text.
    init(listFaulty problems: [SiteProblem]) {
        let first = problems.first
        self.init(.listFaulty, first?.message ?? "the list is faulty", hint: first?.hint)
        siteProblems = problems
    }
}
