// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import Testing

@testable import CountersignSessionBus

/// The keyring's client with GNOME Keyring, and libsecret as another client.
@Suite struct SecretServiceTests {
    private static let secret = Secret(utf8: "canary passphrase é")

    private func service(
        _ environment: [String: String], home: String = "/home/one", limit: Duration = .seconds(60)
    ) -> SecretService {
        SecretService(
            environment: environment, attributes: [("application", "countersign"), ("home", home)], limit: limit)
    }

    private func code(_ body: () throws(SecretServiceError) -> Void) -> SecretServiceError.Code? {
        do throws(SecretServiceError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func anotherClientFindsWhatWasStored() throws {
        let keyring = try KeyringServer()
        let service = service(keyring.environment)
        try service.store(Self.secret, label: "Countersign's vault")
        #expect(try keyring.lookUp("application", "countersign", "home", "/home/one") == Self.secret.utf8Text)
        #expect(try service.secret() == Self.secret)
    }

    @Test func aSecondSecretReplacesTheFirst() throws {
        let keyring = try KeyringServer()
        let service = service(keyring.environment)
        try service.store(Secret(utf8: "first"), label: "a")
        try service.store(Self.secret, label: "a")
        #expect(try service.secret() == Self.secret)
        #expect(try service.remove())
        #expect(try keyring.lookUp("application", "countersign", "home", "/home/one") == "")
        #expect(try !service.remove())
    }

    @Test func anotherHomeHasAnotherSecret() throws {
        let keyring = try KeyringServer()
        try service(keyring.environment).store(Self.secret, label: "a")
        #expect(
            code { () throws(SecretServiceError) in _ = try service(keyring.environment, home: "/home/two").secret() }
                == .missing)
    }

    /// Nobody is there to type the keyring's password.
    @Test func aLockedKeyringIsGivenUp() throws {
        let first = try KeyringServer()
        try service(first.environment).store(Self.secret, label: "a")
        first.stop()
        let keyring = try KeyringServer(isLocked: true, folder: first.contents)
        let service = service(keyring.environment, limit: .seconds(5))
        let read = code { () throws(SecretServiceError) in _ = try service.secret() }
        #expect(read == .declined || read == .timedOut)
        let written = code { () throws(SecretServiceError) in try service.store(Self.secret, label: "a") }
        #expect(written == .declined || written == .timedOut)
    }

    @Test func everyFailureHasItsOwnCode() throws {
        #expect(code { () throws(SecretServiceError) in _ = try service([:]).secret() } == .noBus)
        let missing = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent/bus"]
        #expect(code { () throws(SecretServiceError) in _ = try service(missing).secret() } == .noBus)
        let full = try FullSocket()
        let address = ["DBUS_SESSION_BUS_ADDRESS": full.address]
        #expect(
            code { () throws(SecretServiceError) in _ = try service(address, limit: .milliseconds(300)).secret() }
                == .timedOut)
    }
}
