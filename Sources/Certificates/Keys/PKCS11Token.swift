// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// PKCS#11 tokens, through OpenSSL's engine for them (Debian: libengine-pkcs11-openssl), which has one module in a
/// process: for tokens of several, that is p11-kit's, the system's own. Everything here blocks for as long as the token
/// takes.
package enum PKCS11Token {
    /// The variable that names the module for programs in general.
    package static let moduleVariable = "PKCS11_MODULE_PATH"

    /// The private key, which stays in the token: `noKey` when there is none at `uri`, `wrongPassword` when the PIN is
    /// refused, `passwordNeeded` when it is empty, `unavailable` when the engine or the module cannot be loaded.
    ///
    /// A PIN that was refused is not tried a second time by this process, since a token locks itself after a few.
    package static func key(at uri: TokenURI, pin: Secret) throws(CertificateError) -> PrivateKey {
        try engine.withLock { engine throws(CertificateError) in
            try engine.loaded(with: uri.modulePath).key(at: uri, pin: pin)
        }
    }

    /// The certificate that lies beside the key: `noCertificate` when there is none; otherwise as ``key(at:pin:)``.
    package static func certificate(at uri: TokenURI, pin: Secret) throws(CertificateError) -> Certificate {
        try engine.withLock { engine throws(CertificateError) in
            try engine.loaded(with: uri.modulePath).certificate(at: uri, pin: pin)
        }
    }

    private static let engine = Mutex(TokenEngineHolder())
}

/// The engine of this process, once it is wanted.
private struct TokenEngineHolder {
    private var engine: TokenEngine?

    mutating func loaded(with modulePath: String?) throws(CertificateError) -> TokenEngine {
        // A module that could not be loaded does not stay in the way of another.
        if let engine, engine.hasModule {
            guard engine.modulePath == modulePath else {
                throw CertificateError(
                    .unavailable,
                    "\(engine.moduleName) is in use, and a process has one PKCS#11 module; p11-kit's stands for several: "
                        + "leave the module-path out of all of them")
            }
            return engine
        }
        let engine = try TokenEngine(modulePath: modulePath)
        self.engine = engine
        return engine
    }
}

/// OpenSSL's engine with its module. It is never unloaded: its keys call into it.
private final class TokenEngine {
    let modulePath: String?
    /// The module was loaded, as far as is known.
    private(set) var hasModule = true
    private let engine: OpaquePointer
    /// What the engine calls when it wants a PIN and has none: answers nothing, and shows nothing on the terminal.
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
        // The engine writes its reasons to standard error otherwise.
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

    /// Anew each time: the engine has one PIN, whichever token it is for, and forgets it when it is refused.
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

/// What a PKCS#11 module says, which the engine's library hands on as OpenSSL's reason (PKCS#11 §5.1: CKR_…).
private struct TokenReason {
    let value: Int32
    let text: String?

    /// CKR_PIN_INCORRECT, CKR_PIN_INVALID, CKR_PIN_LEN_RANGE.
    var isRefusedPIN: Bool { [0xA0, 0xA1, 0xA2].contains(value) || isLockedPIN }

    /// CKR_PIN_LOCKED.
    var isLockedPIN: Bool { value == 0xA4 }

    /// The engine's library could not load the module (P11_R_LOAD_MODULE_ERROR).
    var isNoModule: Bool { value == 1025 }

    static func drain() -> [TokenReason] {
        var reasons: [TokenReason] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { return reasons }
            // OpenSSL's own parts have other meanings for the same numbers.
            let isForeign = csn_ERR_GET_LIB(code) >= ERR_LIB_USER
            reasons.append(
                TokenReason(
                    value: isForeign ? csn_ERR_GET_REASON(code) : 0,
                    text: ERR_reason_error_string(code).map { String(cString: $0) }))
        }
    }
}
