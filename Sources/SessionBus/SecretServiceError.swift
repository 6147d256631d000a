// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why the keyring did not do what it was asked. Texts of other programs are printable and shortened.
package struct SecretServiceError: CodedError {
    package enum Code: Equatable, Sendable {
        /// libdbus-1 cannot be loaded.
        case noLibrary
        /// There is no session bus, or it does not answer.
        case noBus
        /// No program provides the keyring.
        case noService
        /// The keyring has answered with an error, or with something that the API does not know.
        case failed
        /// There was no answer in time.
        case timedOut
        /// The person has declined, or could not be asked.
        case declined
        /// The keyring has no such entry.
        case missing
    }

    package let code: Code
    package let detail: String
    package let hint: String?

    init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    init(_ error: BusError) {
        switch error {
        case .noLibrary:
            self.init(.noLibrary, "libdbus-1.so.3 cannot be loaded", hint: "install it (Debian: libdbus-1-3)")
        case .unreachable(let reason): self = .noBus(reason)
        }
    }

    /// `method` is one of the API.
    init(_ error: BusCallError, in method: String) {
        switch error {
        case .lost: self = .noBus("it has closed the connection")
        case .unwritable: self.init(.failed, "there is no memory for the call \(method) of the keyring")
        case .timedOut: self.init(.timedOut, "waited too long for the keyring to answer \(method)")
        case .refused(let name, let text):
            let reason = PrintableText.longer(text ?? name)
            let isUnknown = ["ServiceUnknown", "NameHasNoOwner", "Spawn."].contains {
                name.hasPrefix("org.freedesktop.DBus.Error.\($0)")
            }
            if isUnknown {
                self.init(
                    .noService, "no program provides the keyring \(SecretService.name): \(reason)",
                    hint: "install one, such as gnome-keyring")
            } else {
                self.init(.failed, "the keyring has refused \(method): \(reason)")
            }
        }
    }

    static func noBus(_ reason: String) -> SecretServiceError {
        SecretServiceError(
            .noBus, "there is no session bus: \(reason)",
            hint: "run this in the session of your desktop, or with `dbus-run-session`")
    }

    static func malformed(_ method: String) -> SecretServiceError {
        SecretServiceError(.failed, "the keyring's answer to \(method) is not that of the Secret Service API")
    }

    static func stayedLocked(_ code: Code, _ why: String) -> SecretServiceError {
        SecretServiceError(
            code, "the keyring is locked, and it was not unlocked \(why)",
            hint: "unlock it in your desktop's program for passwords")
    }
}
