// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import CountersignVault

/// Vault: opening a small home's vault with a key file and with a passphrase.
enum VaultBenchmarks {
    static let groups = [BenchmarkGroup(prefix: "vault", make: vault)]

    private static func vault() throws -> [Benchmark] {
        let passphrase = Secret(utf8: "four words and a 9")
        let keyed = try Home(openedBy: .file)
        let phrased = try Home(openedBy: .passphrase(passphrase))
        return [
            Benchmark("vault-open-key-file", .atMost) {
                keep(try keyed.file.open { throw SetUpFailure("a key file needs no passphrase") })
            },
            Benchmark("vault-open-passphrase", .atMost) { keep(try phrased.file.open { passphrase }) },
            Benchmark("vault-derive-key", .atMost) {
                let scrypt = Scrypt(costExponent: 17, blockSize: 8, parallelization: 1)
                keep(try scrypt.key(from: passphrase, salt: [UInt8](repeating: 0x42, count: 16)))
            },
        ]
    }

    /// A home with three credentials, the keys of two identities and those of the interception authority. Deleted in
    /// `deinit`.
    private final class Home {
        let file: SealedVault
        private let path: String

        init(openedBy key: NewVaultKey) throws {
            path = try Checkout.temporaryFolder()
            file = SealedVault(home: path)
            try file.create(openedBy: key).update { contents in
                for name in ["enrollment", "git", "wiki"] {
                    try contents.setCredential(name: name, user: "ACME\\jdoe", password: Secret(utf8: "pass \(name)"))
                }
                let key = Secret([UInt8](repeating: 0x30, count: 138))
                for name in ["laptop", "badge"] {
                    try contents.setIdentityKey(
                        IdentityKey(name: name, privateKey: key, leafSHA256: [UInt8](repeating: 7, count: 32)))
                }
                try contents.setInterception(InterceptionKeys(rootKey: key, issuingKey: key))
            }
        }

        deinit {
            for name in ["vault", "vault.key", "vault.bak", "vault.lock"] { unlink("\(path)/\(name)") }
            rmdir(path)
        }
    }
}
