// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Encodes contents as the bytes of a vault and decodes them. Salt, nonces and keys are arguments.
enum VaultCodec {
    /// A header that contains `dataKey`, wrapped under `key`.
    static func header(
        wrapping dataKey: Secret, under key: Secret, derivation: KeyDerivation, nonce: [UInt8]
    ) throws(VaultError) -> VaultHeader {
        var header = VaultHeader(derivation: derivation, wrapNonce: nonce)
        let wrapHeader = header.wrapHeader
        header.wrappedKey = try seal(dataKey, key: key, nonce: nonce, authenticating: wrapHeader)
        return header
    }

    /// The whole vault. `header` has the wrapped key; the nonce and length of the payload are set here.
    static func encode(
        _ contents: VaultContents, header: VaultHeader, dataKey: Secret, nonce: [UInt8]
    ) throws(VaultError) -> [UInt8] {
        let payload = try VaultRecords.encode(contents)
        var header = header
        header.payloadNonce = nonce
        header.payloadBytes = UInt32(payload.count + AESGCM.tagBytes)
        let clear = header.encoded()
        return clear + (try seal(payload, key: dataKey, nonce: nonce, authenticating: clear))
    }

    /// The data key, unwrapped with `key`. Throws `wrongKey` or `wrongPassphrase` for another key.
    static func dataKey(of header: VaultHeader, key: Secret) throws(VaultError) -> Secret {
        do {
            return try AESGCM.open(
                header.wrappedKey, key: key, nonce: header.wrapNonce, authenticating: header.wrapHeader)
        } catch  where error.code == .authenticationFailed {
            switch header.derivation.key {
            case .file:
                throw VaultError(
                    .wrongKey, "the key file does not open the vault, or the vault's header was altered")
            case .passphrase:
                throw VaultError(
                    .wrongPassphrase, "the passphrase does not open the vault, or the vault's header was altered")
            }
        } catch {
            throw VaultError(.cryptography, error.detail)
        }
    }

    /// The contents of the vault `bytes`, given its header and data key.
    static func decode(_ bytes: [UInt8], header: VaultHeader, dataKey: Secret) throws(VaultError) -> VaultContents {
        let payload: Secret
        do {
            payload = try AESGCM.open(
                Array(bytes.dropFirst(VaultHeader.bytes)), key: dataKey, nonce: header.payloadNonce,
                authenticating: header.encoded())
        } catch  where error.code == .authenticationFailed {
            throw VaultError(.altered, "the vault was altered after it was written")
        } catch {
            throw VaultError(.cryptography, error.detail)
        }
        return try VaultRecords.decode(payload)
    }

    private static func seal(
        _ secret: Secret, key: Secret, nonce: [UInt8], authenticating header: [UInt8]
    ) throws(VaultError) -> [UInt8] {
        do {
            return try secret.withBytes { bytes throws(CryptographyError) in
                try AESGCM.seal(bytes, key: key, nonce: nonce, authenticating: header)
            }
        } catch {
            throw VaultError(.cryptography, error.detail)
        }
    }
}
