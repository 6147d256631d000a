// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import FoundationEssentials
import Glibc

/// The vault's passphrase, sealed by the machine's TPM 2.0 with the programs of tpm2-tools. The sealed object is in the
/// home, and no other TPM can open it. It has no password and is bound to no PCRs, so that an update of the firmware
/// does not lose it: it protects a copied disk, and not from somebody who starts this machine and may read the home.
struct SealedPassphrase {
    let home: Home

    private static let programs = "/usr/bin"
    /// The most that a TPM seals, in bytes (TPM 2.0 Library, Part 2, MAX_SYM_DATA).
    private static let maximumBytes = 128
    private static let hint = "the passphrase opens the vault: `countersign vault unlock`"

    /// Two lines of base64: the public and the private part of the sealed object. Neither is secret outside the TPM.
    var file: HomeFile { home.file("vault.tpm") }

    func passphrase(environment: [String: String]) throws(CountersignError) -> Secret {
        guard let bytes = try file.readIfThere(upTo: ProgramRun.maximumBytes) else {
            throw CountersignError(
                .environment, "\(file.name) is missing, the vault's passphrase as the TPM has sealed it",
                hint: Self.hint)
        }
        let parts = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { Base64.decode($0) }
        guard parts.count == 2, let outer = parts[0], let inner = parts[1] else {
            throw CountersignError(
                .configuration, "\(file.name) is not what `countersign vault rekey --keep-in tpm` has written",
                hint: Self.hint)
        }
        return try withTools(environment, "and the vault's passphrase cannot be read") {
            tools throws(CountersignError) in
            try HomeFile(path: tools.path("public")).replace(with: outer, mode: 0o600, isDurable: false)
            try HomeFile(path: tools.path("private")).replace(with: inner, mode: 0o600, isDurable: false)
            _ = try tools.run(
                "load", "-C", tools.path("primary"), "-u", tools.path("public"), "-r", tools.path("private"), "-c",
                tools.path("object"))
            let secret = try tools.run("unseal", "-c", tools.path("object"))
            guard secret.count > 0 else {
                throw CountersignError(.environment, "the TPM has sealed an empty passphrase", hint: Self.hint)
            }
            return secret
        }
    }

    func store(_ passphrase: Secret, environment: [String: String]) throws(CountersignError) {
        guard passphrase.count <= Self.maximumBytes else {
            throw CountersignError(
                .environment,
                "a TPM keeps at most \(Self.maximumBytes) bytes, and the passphrase has "
                    + "\(passphrase.count)", hint: "choose a shorter one")
        }
        let parts = try withTools(environment, "and nothing is stored") { tools throws(CountersignError) in
            _ = try tools.run(
                "create", "-C", tools.path("primary"), "-i", "-", "-u", tools.path("public"), "-r",
                tools.path("private"), input: passphrase)
            return [
                try HomeFile(path: tools.path("public")).read(upTo: ProgramRun.maximumBytes),
                try HomeFile(path: tools.path("private")).read(upTo: ProgramRun.maximumBytes),
            ]
        }
        let text = parts.map { Base64.encode($0) + "\n" }.joined()
        try file.replace(with: Array(text.utf8), mode: 0o600)
    }

    /// Runs `body` with a folder in which the TPM's storage key is loaded as `primary`. The folder is removed then.
    private func withTools<Value>(
        _ environment: [String: String], _ consequence: String,
        _ body: (Tools) throws(CountersignError) -> Value
    ) throws(CountersignError) -> Value {
        try requireDevice(environment, consequence)
        var template = Array("\(home.path)/.tpm-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw .system(errno, "cannot create a folder in \(home.path)") }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let tools = Tools(folder: folder, environment: environment, consequence: consequence)
        // Without a resource manager, a TPM has room for three objects, and the programs leave theirs behind.
        defer { tools.flush() }
        _ = try tools.run("createprimary", "-C", "o", "-g", "sha256", "-G", "ecc", "-c", tools.path("primary"))
        tools.flush()
        return try body(tools)
    }

    /// tpm2-tools find a TPM by `TPM2TOOLS_TCTI`, or else by its device.
    private func requireDevice(_ environment: [String: String], _ consequence: String) throws(CountersignError) {
        let devices = ["/dev/tpmrm0", "/dev/tpm0"]
        guard environment["TPM2TOOLS_TCTI", default: ""].isEmpty, !devices.contains(where: { access($0, F_OK) == 0 })
        else { return }
        throw CountersignError(
            .environment,
            "this machine has no TPM 2.0: there is neither \(devices.joined(separator: " nor ")), \(consequence)",
            hint: "switch it on in the firmware, or use another place: `countersign vault rekey --keep-in keyring`")
    }

    private struct Tools {
        let folder: String
        let environment: [String: String]
        let consequence: String

        private static let limit = Duration.seconds(30)

        func path(_ name: String) -> String { "\(folder)/\(name)" }

        /// Runs one of the programs; `create` stands for `tpm2_create -Q`.
        func run(_ name: String, _ words: String..., input: Secret? = nil) throws(CountersignError) -> Secret {
            let program = "\(programs)/tpm2_\(name)"
            guard access(program, X_OK) == 0 else {
                throw CountersignError(
                    .environment, "there is no \(program), \(consequence)", hint: "install it (Debian: tpm2-tools)")
            }
            do {
                return try ProgramRun(
                    [program, "-Q"] + words, consequence: consequence, reportsErrors: true, environment: environment
                ).output(input: input, until: Self.limit)
            } catch {
                // The program's arguments are in a folder that is gone when somebody reads this.
                throw CountersignError(
                    error.code, error.detail, hint: "`tpm2_getcap properties-fixed` shows whether the TPM answers")
            }
        }

        func flush() { _ = try? run("flushcontext", "-t") }
    }
}
