// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignVault

extension VaultOperations {
    /// Stores the program that writes the password of `user`, or a bearer token without one; the vault does not contain
    /// the secret. Not a ``VaultOperation``: a server that is confined would run a program for a process that is not.
    package func setProgram(name: String, user: String?, words: [String], keepSeconds: Int64?) throws {
        try Self.check(name)
        try opened().update {
            try $0.setProgram(name: name, user: user, words: words, keepSeconds: keepSeconds)
        }
        try BreakerFile(home: home, now: now).nameChanged(name, to: nil)
    }
}
