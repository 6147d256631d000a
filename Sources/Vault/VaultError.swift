// SPDX-License-Identifier: Apache-2.0

/// Why a vault was not opened or not written. Compared by its code; names files, never what they hold.
package struct VaultError: Error, Equatable, CustomStringConvertible {
    package enum Code: Equatable, Sendable {
        /// There is no vault in this home.
        case missing
        /// There is one already.
        case exists
        /// The key file does not open the vault, or the vault's header was altered: the two look alike.
        case wrongKey
        /// The passphrase does not open the vault, or the vault's header was altered: the two look alike.
        case wrongPassphrase
        /// The key fits and the contents do not.
        case altered
        /// The file ends early.
        case cut
        /// Written by a newer Countersign.
        case newerVersion
        /// The file is something else.
        case notAVault
        /// The file or its folder is open to others, or belongs to somebody else.
        case permissions
        /// More bytes, or more records, than a vault may have.
        case tooLarge
        /// Another process has been writing for too long.
        case locked
        /// The system call failed with this errno.
        case io(Int32)
        /// The vault wants a passphrase, and none was given.
        case passphraseNeeded
        /// The vault is opened by a key file, which is not there.
        case keyFileMissing
        /// The key file holds no key.
        case keyFileInvalid
        /// The file is older than what this process has already read.
        case rolledBack
        /// A name or value that a record cannot hold.
        case invalidRecord
        /// OpenSSL cannot do what the vault needs.
        case cryptography
    }

    package let code: Code
    /// What is wrong, and with which file.
    package let detail: String
    /// What the person can do about it.
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    package static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    package var description: String { detail }

    /// The same error, with the file that it is about in front.
    func about(_ path: String) -> VaultError {
        VaultError(code, "\(path.debugDescription): \(detail)", hint: hint)
    }
}
