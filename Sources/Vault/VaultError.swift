// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a vault could not be opened or written. Names files, never their contents.
package struct VaultError: CodedError {
    package enum Code: Equatable, Sendable {
        /// There is no vault.
        case missing
        /// There is already a vault.
        case exists
        /// The stored key does not open the vault, or the vault's header was altered: the two cannot be distinguished.
        case wrongKey
        /// The passphrase does not open the vault, or the vault's header was altered: the two cannot be distinguished.
        case wrongPassphrase
        /// The key is right, but the contents do not authenticate or are malformed.
        case altered
        /// The vault ends early.
        case cut
        /// Written by a newer version of Countersign.
        case newerVersion
        /// The bytes or the file are something else.
        case notAVault
        /// Other users have access to an item, or own it or its folder.
        case permissions
        /// More bytes or more records than the limit.
        case tooLarge
        /// Another process has held the lock for too long.
        case locked
        /// A system call failed with this errno.
        case io(Int32)
        /// The vault needs a passphrase, and none was given.
        case passphraseNeeded
        /// The key that opens the vault is not stored.
        case keyFileMissing
        /// The stored key is malformed.
        case keyFileInvalid
        /// The stored vault is older than a version that this process has already read.
        case rolledBack
        /// Another process wrote the item after it was read: the compare-and-swap failed.
        case changed
        /// A name or value that cannot be stored.
        case invalidRecord
        /// Another kind of record has that name.
        case nameInUse
        /// OpenSSL does not support an algorithm of the vault.
        case cryptography
    }

    package let code: Code
    package let detail: String
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }
}
