// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignVault

/// Two vaults with the same contents, written by another implementation: Python's `cryptography` and `hashlib.scrypt`
/// after the layouts in `VaultHeader` and `VaultRecords`.
enum VaultVectors {
    /// The key file's key is the bytes 200 to 231.
    static let key = Secret((200..<232).map { UInt8($0) })
    /// N = 2^15, r = 8, p = 1, the salt is the bytes 60 to 75.
    static let passphrase = "geheim ü"

    static let dataKey = Secret((100..<132).map { UInt8($0) })
    static let wrapNonce = (1...12).map { UInt8($0) }
    static let payloadNonce = (21...32).map { UInt8($0) }
    static let generation: UInt64 = 7

    static let credentials = [
        PasswordCredential(
            name: "build", user: "ACME\\builder", password: Secret(utf8: "correct horse"), generation: 3),
        PasswordCredential(
            name: "enrollment", user: "josé@acme.example", password: Secret(utf8: "päss漢"), generation: 7),
    ]
    static let identityKey = IdentityKey(
        name: "laptop", privateKey: Secret((48..<96).map { UInt8($0) }), leafSHA256: (0..<32).map { UInt8($0) })
    static let interception = InterceptionKeys(
        rootKey: Secret(utf8: "root key"), issuingKey: Secret(utf8: "issuing key"))

    static let keyFileVault = """
        43535631000100000000000000000000000000000000000000000000000000000102030405060708090a0b0c7296ed5b\
        aae5fa239e4b6752abf4adf772eec391b1235192619af2999fe5cb23ab233f76f97781aa4efa16269806983015161718\
        191a1b1c1d1e1f2000000115e0b11221136f91af8e9da53befa7b2152c9e33ed12d04e6ae0b7d7279c639d8ed533ab07\
        d847458d2cbd9575424e09c3714fcd731afab250efd595e7a97516a53bb209e4ce0c399c0c3f6e7faf80b888297fbe49\
        67b89660fc6381d0fd632b352226c98332384ebcafdd95499cefd692c13141fcf1fb480a87c250f7ae2d70c7e22433c0\
        b95df05b1c88f300e2dfca154df9c2fd00e3b506ee6c0b316fe20480f3f93504549efdae99074bef5cd9ea5bbc83d0c8\
        8001ea208d77e213170bd9316dd1c3daa9633c363cdd6e037f4b231368e4283b7939f97d7f13130c30dc790c3e340b53\
        7643bac566565c5febfb9afce312a48a08051a125bf2480f50abe4b602d8fafab82f5610a70e56e6e0e16905f45136fb\
        e8
        """
    static let passphraseVault = """
        435356310001010f00000008000000013c3d3e3f404142434445464748494a4b0102030405060708090a0b0c429772f5\
        385c88b90db996aaa7dda1054d090bed223448b1874df7920de98a2958339caeceddb1c52dcd7bc86a3077a215161718\
        191a1b1c1d1e1f2000000115e0b11221136f91af8e9da53befa7b2152c9e33ed12d04e6ae0b7d7279c639d8ed533ab07\
        d847458d2cbd9575424e09c3714fcd731afab250efd595e7a97516a53bb209e4ce0c399c0c3f6e7faf80b888297fbe49\
        67b89660fc6381d0fd632b352226c98332384ebcafdd95499cefd692c13141fcf1fb480a87c250f7ae2d70c7e22433c0\
        b95df05b1c88f300e2dfca154df9c2fd00e3b506ee6c0b316fe20480f3f93504549efdae99074bef5cd9ea5bbc83d0c8\
        8001ea208d77e213170bd9316dd1c3daa9633c363cdd6e037f4b231368e4283b7939f97d7f13130c30dc790c3e340b53\
        7643bac566565c5febfb9afce312a48a08051a125bf2480f50abe4b602d8fafab835f448cac0b0b8377f23593e93d50d\
        ca
        """
}
