// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// The vault's passphrase as a credential of systemd (systemd.exec(5), "Credentials"): encrypted in the home, and
/// decrypted by systemd for the service alone, in `$CREDENTIALS_DIRECTORY`.
struct SystemdCredential {
    let home: Home

    private static let name = "countersign.vault"
    private static let program = "/usr/bin/systemd-creds"
    /// The first version that encrypts for a user other than root.
    private static let firstForUsers = 256
    private static let hint = "the passphrase opens the vault: `countersign vault unlock`"

    /// The encrypted credential. Nothing but this machine, its TPM included if it has one, can decrypt it.
    var file: HomeFile { home.file("vault.systemd") }

    /// The lines for the service's unit.
    var dropIn: String {
        """
        [Service]
        LoadCredentialEncrypted=\(place)
        """
    }

    /// The credential's name and the file with it.
    private var place: String { "\(Self.name):\(Self.escaped(HomeFile.absolutePath(file.path) ?? file.path))" }

    /// `%` begins a specifier in a unit.
    private static func escaped(_ path: String) -> String {
        path.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "%%")
    }

    // MARK: Reading

    /// From systemd; a root process that systemd has not started decrypts the file itself.
    func passphrase(environment: [String: String]) throws(CountersignError) -> Secret {
        if let folder = environment["CREDENTIALS_DIRECTORY"], !folder.isEmpty { return try passphrase(in: folder) }
        guard geteuid() == 0, file.isRegular else {
            throw CountersignError(
                .environment,
                "the vault's passphrase is a credential of systemd, and CREDENTIALS_DIRECTORY is not set: systemd gives"
                    + " it to a service only", hint: Self.hint)
        }
        let run = ProgramRun(
            [Self.program, "decrypt", "--name=\(Self.name)", file.path, "-"],
            consequence: "and the vault's passphrase cannot be decrypted", reportsErrors: true)
        return try Self.checked(try run.output().firstLine, "\(file.name)")
    }

    private func passphrase(in folder: String) throws(CountersignError) -> Secret {
        let path = "\(folder)/\(Self.name)"
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw .system(errno, "cannot read \(path)", hint: Self.hint) }
            throw CountersignError(
                .environment, "systemd has given this service no credential \(Self.name), the vault's passphrase",
                hint: "the service's unit needs LoadCredentialEncrypted=\(place); \(Self.hint)")
        }
        defer { close(descriptor) }
        for (what, place) in [(descriptor, path), (AT_FDCWD, folder)] {
            var found = stat()
            let status = what == AT_FDCWD ? stat(folder, &found) : fstat(descriptor, &found)
            guard status == 0, !Self.isExposed(found) else {
                throw CountersignError(
                    .environment, "other users may read or replace \(place), so it is not used",
                    hint: "`ls -ld \(ShellWord.quoted(place))` shows who")
            }
        }
        var bytes = try HomeFile(path: path).contents(of: descriptor, about: 256, upTo: ProgramRun.maximumBytes)
        return try Self.checked(Secret(wiping: &bytes).firstLine, path)
    }

    /// The group's bits of a file of root's are the mask of its access list, which names the service's user.
    private static func isExposed(_ found: stat) -> Bool {
        let isOfRoot = found.st_uid == 0 && geteuid() != 0
        guard found.st_uid == geteuid() || isOfRoot else { return true }
        return found.st_mode & (isOfRoot ? 0o027 : 0o077) != 0
    }

    private static func checked(_ secret: Secret, _ place: String) throws(CountersignError) -> Secret {
        guard secret.count > 0 else {
            throw CountersignError(.environment, "the vault's passphrase in \(place) is empty", hint: hint)
        }
        return secret
    }

    // MARK: Storing

    func store(_ passphrase: Secret) throws(CountersignError) {
        var words = [Self.program]
        if geteuid() != 0 {
            let version = try Self.version()
            guard version >= Self.firstForUsers else {
                throw CountersignError(
                    .environment,
                    "systemd \(version) encrypts no credentials for users; that begins with \(Self.firstForUsers)",
                    hint: "use `--keep-in keyring`, or run the server as a service of the system, and this as root")
            }
            words.append("--user")
        }
        let run = ProgramRun(
            words + ["encrypt", "--name=\(Self.name)", "-", "-"], consequence: "and nothing is stored",
            reportsErrors: true)
        let encrypted = try run.output(input: passphrase)
        try file.replace(with: encrypted.withBytes(Array.init), mode: 0o600)
    }

    /// The first number of `systemd 252 (252.1-1)`.
    private static func version() throws(CountersignError) -> Int {
        let run = ProgramRun([program, "--version"], consequence: "and nothing is stored", reportsErrors: true)
        let line = try run.output().utf8Text ?? ""
        return line.split(separator: " ").dropFirst().first.flatMap { Int($0.prefix(while: \.isNumber)) } ?? 0
    }
}
