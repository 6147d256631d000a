// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Access to PKCS#11 tokens through OpenSSL's PKCS#11 engine (Debian: libengine-pkcs11-openssl). The engine loads one
/// module per process; to use tokens of several modules, leave it at the system's default, p11-kit's proxy module. All
/// calls block until the token responds.
package enum PKCS11Token {
    /// The environment variable that other programs use for the module's path.
    package static let moduleVariable = "PKCS11_MODULE_PATH"

    /// The private key, which stays in the token. Throws `noKey` if `uri` names none, `wrongPassword` if the token
    /// refuses the PIN, `passwordNeeded` if the PIN is empty, and `unavailable` if the engine or the module cannot be
    /// loaded.
    ///
    /// This process does not send a refused PIN again, because a token locks itself after a few wrong PINs.
    package static func key(at uri: TokenURI, pin: Secret) throws(CertificateError) -> PrivateKey {
        try engine.withLock { engine throws(CertificateError) in
            try engine.loaded(with: uri.modulePath).key(at: uri, pin: pin)
        }
    }

    /// The key's certificate in the token. Throws `noCertificate` without one; otherwise like ``key(at:pin:)``.
    package static func certificate(at uri: TokenURI, pin: Secret) throws(CertificateError) -> Certificate {
        try engine.withLock { engine throws(CertificateError) in
            try engine.loaded(with: uri.modulePath).certificate(at: uri, pin: pin)
        }
    }

    private static let engine = Mutex(TokenEngineHolder())
}

/// The engine of this process, loaded on first use.
private struct TokenEngineHolder {
    private var engine: TokenEngine?

    mutating func loaded(with modulePath: String?) throws(CertificateError) -> TokenEngine {
        // A module that failed to load can be replaced by another.
        if let engine, engine.hasModule {
            guard engine.modulePath == modulePath else {
                throw CertificateError(
                    .unavailable,
                    "\(engine.moduleName) is in use, and a process can only load one PKCS#11 module; p11-kit's module gives access to several: "
                        + "leave out the module-path in all URIs")
            }
            return engine
        }
        let engine = try TokenEngine(modulePath: modulePath)
        self.engine = engine
        return engine
    }
}

/// OpenSSL's engine with its module. Never unloaded, because its keys use it.
private final class TokenEngine {
    let modulePath: String?
    /// Whether the module is loaded. Loading may fail on first use.
    private(set) var hasModule = true
    private let engine: OpaquePointer
    /// The user interface for PIN requests of the engine: returns nothing, so that the engine does not prompt on the
    /// terminal.
    private let silentUser: OpaquePointer?
    private var refused: [(uri: TokenURI, pin: Secret)] = []

    var moduleName: String { modulePath ?? "the system's PKCS#11 module" }

    init(modulePath: String?) throws(CertificateError) {
        self.modulePath = modulePath
        if let modulePath, access(modulePath, R_OK) != 0 {
            throw CertificateError(.unavailable, "the PKCS#11 module \(modulePath) cannot be read")
        }
        ERR_clear_error()
        guard let engine = csn_ENGINE_by_id("pkcs11") else {
            ERR_clear_error()
            throw CertificateError(
                .unavailable,
                "keys in tokens need OpenSSL's PKCS#11 engine (Debian: libengine-pkcs11-openssl), which is not installed"
            )
        }
        self.engine = engine
        silentUser = UI_create_method("no user")
        UI_method_set_reader(silentUser) { _, _ in 0 }
        // Otherwise the engine writes errors to standard error.
        _ = csn_ENGINE_ctrl_cmd_string(engine, "QUIET", nil)
        _ = csn_ENGINE_ctrl_cmd(engine, "SET_USER_INTERFACE", silentUser.map { UnsafeMutableRawPointer($0) })
        if let modulePath { _ = csn_ENGINE_ctrl_cmd_string(engine, "MODULE_PATH", modulePath) }
        guard csn_ENGINE_init(engine) == 1 else { throw .openSSL(.unavailable, "\(moduleName) cannot be loaded") }
    }

    func key(at uri: TokenURI, pin: Secret) throws(CertificateError) -> PrivateKey {
        try show(pin, to: uri)
        if let key = csn_ENGINE_load_private_key(engine, uri.objectText, silentUser, nil) {
            return PrivateKey(inToken: key)
        }
        throw failure(.noKey, "no private key", uri, pin)
    }

    func certificate(at uri: TokenURI, pin: Secret) throws(CertificateError) -> Certificate {
        try show(pin, to: uri)
        let found = uri.objectText.withCString { object in
            var asked = csn_token_certificate(name: object, certificate: nil)
            _ = csn_ENGINE_ctrl_cmd(engine, "LOAD_CERT_CTRL", &asked)
            return asked.certificate
        }
        guard let found else { throw failure(.noCertificate, "no certificate", uri, pin) }
        defer { X509_free(found) }
        return try Certificate(der: derBytes { i2d_X509(found, $0) })
    }

    /// Set for every call: the engine stores one PIN for all tokens, and deletes it when a token refuses it.
    private func show(_ pin: Secret, to uri: TokenURI) throws(CertificateError) {
        guard pin.count > 0, !pin.withBytes({ $0.contains(0) }) else {
            throw CertificateError(.passwordNeeded, "the token's PIN is empty")
        }
        guard !refused.contains(where: { $0.uri == uri && $0.pin == pin }) else {
            throw CertificateError(.wrongPassword, "the token refused that PIN before; it is not tried again")
        }
        ERR_clear_error()
        let text = Secret(count: pin.count + 1) { room in pin.withBytes { room.copyMemory(from: $0) } }
        text.withBytes { bytes in
            _ = csn_ENGINE_ctrl_cmd_string(engine, "PIN", bytes.assumingMemoryBound(to: CChar.self).baseAddress)
        }
    }

    private func failure(
        _ code: CertificateError.Code, _ what: String, _ uri: TokenURI, _ pin: Secret
    ) -> CertificateError {
        let reasons = TokenReason.drain()
        if reasons.contains(where: \.isRefusedPIN) {
            refused.append((uri, pin))
            let isLocked = reasons.contains(where: \.isLockedPIN)
            return CertificateError(
                .wrongPassword, isLocked ? "the token's PIN is locked" : "the token refuses the PIN")
        }
        if reasons.contains(where: \.isNoModule) {
            hasModule = false
            return CertificateError(.unavailable, "\(moduleName) is not a PKCS#11 module that can be loaded")
        }
        let texts = Set(reasons.compactMap(\.text)).sorted().joined(separator: "; ")
        return CertificateError(code, "\(what) \(uri.objectText) in \(moduleName)\(texts.isEmpty ? "" : ": \(texts)")")
    }
}

/// A PKCS#11 module's error code (PKCS#11 §5.1: CKR_…), which the engine reports as OpenSSL's reason.
private struct TokenReason {
    let value: Int32
    let text: String?

    /// CKR_PIN_INCORRECT, CKR_PIN_INVALID, CKR_PIN_LEN_RANGE.
    var isRefusedPIN: Bool { [0xA0, 0xA1, 0xA2].contains(value) || isLockedPIN }

    /// CKR_PIN_LOCKED.
    var isLockedPIN: Bool { value == 0xA4 }

    /// Whether the engine could not load the module (P11_R_LOAD_MODULE_ERROR).
    var isNoModule: Bool { value == 1025 }

    static func drain() -> [TokenReason] {
        var reasons: [TokenReason] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { return reasons }
            // In OpenSSL's own libraries, the same numbers have other meanings.
            let isForeign = csn_ERR_GET_LIB(code) >= ERR_LIB_USER
            reasons.append(
                TokenReason(
                    value: isForeign ? csn_ERR_GET_REASON(code) : 0,
                    text: ERR_reason_error_string(code).map { String(cString: $0) }))
        }
    }
}
