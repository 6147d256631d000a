// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a passphrase is easy to guess. An attacker with a copy of the vault can try passphrases as fast as scrypt
/// permits, a few per second on each processor.
struct PassphraseWeakness: Equatable {
    let reason: String

    static let advice =
        "whoever copies the vault can try passphrases; `countersign vault rekey --passphrase` with four random words "
        + "or more resists that"

    private static let shortest = 12
    private static let leastDistinct = 6

    /// Nil for a passphrase without an obvious weakness. Never contains the passphrase.
    init?(of passphrase: Secret) {
        let (count, distinct, hasOnlyDigits) = passphrase.withBytes { bytes in
            (bytes.count, Set(bytes).count, bytes.allSatisfy { (0x30...0x39).contains($0) })
        }
        if count < Self.shortest {
            reason = "it has fewer than \(Self.shortest) characters"
        } else if distinct < Self.leastDistinct {
            reason = "it repeats a few characters"
        } else if hasOnlyDigits, count < 2 * Self.shortest {
            reason = "it has only digits"
        } else {
            return nil
        }
    }
}
