// SPDX-License-Identifier: Apache-2.0

import CountersignHome
package import CountersignVault

extension VaultOperations {
    /// Stores the program that writes a password, a bearer token or keys of AWS; the vault does not contain the secret.
    /// Not a ``VaultOperation``: a server that is confined would run a program for a process that is not.
    package func setProgram(
        name: String, _ written: ProgramCredential.Written, words: [String], keepSeconds: Int64?
    ) throws {
        try Self.check(name)
        try opened().update {
            try $0.setProgram(name: name, written, words: words, keepSeconds: keepSeconds)
        }
        try BreakerFile(home: home, now: now).nameChanged(name, to: nil)
    }
}
