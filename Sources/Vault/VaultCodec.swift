// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Contents to the bytes of a vault file and back. Salt, nonces and keys are arguments.
enum VaultCodec {
    /// A header in which `dataKey` is wrapped under `key`.
    static func header(
        wrapping dataKey: Secret, under key: Secret, derivation: KeyDerivation, nonce: [UInt8]
    ) throws(VaultError) -> VaultHeader {
        var header = VaultHeader(derivation: derivation, wrapNonce: nonce)
        let wrapHeader = header.wrapHeader
        header.wrappedKey = try seal(dataKey, key: key, nonce: nonce, authenticating: wrapHeader)
        return header
    }

    /// The whole file. `header` says who opens it; nonce and length are put in here.
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

    /// The data key, unwrapped with `key`; `wrongKey` or `wrongPassphrase` when it does not fit.
    static func dataKey(of header: VaultHeader, key: Secret) throws(VaultError) -> Secret {
        do {
            return try AESGCM.open(
                header.wrappedKey, key: key, nonce: header.wrapNonce, authenticating: header.wrapHeader)
        } catch  where error.code == .authenticationFailed {
            switch header.derivation.key {
            case .file:
                throw VaultError(
                    .wrongKey, "the key file does not open the vault, or the vault's header was altered",
                    hint: "restore \"vault.key\", or \"vault\" from \"vault.bak\"")
            case .passphrase:
                throw VaultError(
                    .wrongPassphrase, "the passphrase does not open the vault, or the vault's header was altered",
                    hint: "try again; a vault that was altered can be restored from \"vault.bak\"")
            }
        } catch {
            throw VaultError(.cryptography, error.detail)
        }
    }

    /// The contents of `file`, whose header has been read and whose data key is known.
    static func decode(_ file: [UInt8], header: VaultHeader, dataKey: Secret) throws(VaultError) -> VaultContents {
        let payload: Secret
        do {
            payload = try AESGCM.open(
                Array(file.dropFirst(VaultHeader.bytes)), key: dataKey, nonce: header.payloadNonce,
                authenticating: header.encoded())
        } catch  where error.code == .authenticationFailed {
            throw VaultError(.altered, "the vault was altered after it was written", hint: VaultHeader.restore)
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
