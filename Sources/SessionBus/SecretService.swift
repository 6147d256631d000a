// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Dispatch
import Glibc
import Synchronization

/// The keyring of the user's session: the Secret Service API of freedesktop.org, which GNOME Keyring, KWallet and
/// KeePassXC provide. One entry, which its attributes identify, in the default collection.
///
/// The secret goes over the bus in plain text, in the API's algorithm `plain`: the bus is a socket of this machine, and
/// whoever may listen to it may ask the keyring for the secret, too.
package struct SecretService: Sendable {
    private let address: String?
    /// `application` and others; none is secret.
    private let attributes: [(String, String)]
    /// How long an operation may take, with a person who unlocks the keyring.
    private let limit: Duration

    static let name = "org.freedesktop.secrets"
    private static let operations = DispatchQueue(label: "countersign.secrets", attributes: .concurrent)

    package init(environment: [String: String], attributes: [(String, String)], limit: Duration) {
        address = BusAddress.session(in: environment)
        self.attributes = attributes
        self.limit = limit
    }

    /// Adds the entry, or replaces its secret. `label` is what the keyring's programs show.
    package func store(_ secret: Secret, label: String) throws(SecretServiceError) {
        try inTime { session throws(SecretServiceError) in try session.store(secret, label: label) }
    }

    /// The entry's secret. Throws `missing` if there is no such entry.
    package func secret() throws(SecretServiceError) -> Secret {
        try inTime { session throws(SecretServiceError) in try session.secret() }
    }

    /// Removes the entry, and returns whether there was one.
    @discardableResult
    package func remove() throws(SecretServiceError) -> Bool {
        try inTime { session throws(SecretServiceError) in try session.remove() }
    }

    /// Runs `body` on a thread of its own: libdbus cannot be stopped while it connects, and a bus that accepts no
    /// connection would block it for as long as that bus lives. The thread is left behind then.
    private func inTime<Value: Sendable>(
        _ body: @escaping @Sendable (Session) throws(SecretServiceError) -> Value
    ) throws(SecretServiceError) -> Value {
        guard let address else { throw .noBus(BusAddress.reasonForNone) }
        let deadline = ContinuousClock.now + limit
        let done = DispatchSemaphore(value: 0)
        let late = SecretServiceError(
            .timedOut, "the keyring did not answer within \(limit.components.seconds) seconds")
        let result = Mutex<Result<Value, SecretServiceError>>(.failure(late))
        Self.operations.async { [attributes] in
            let outcome = Result<Value, SecretServiceError> { () throws(SecretServiceError) in
                try body(try Session(on: try Self.connect(to: address), attributes, until: deadline))
            }
            result.withLock { $0 = outcome }
            done.signal()
        }
        let seconds = limit / Duration.seconds(1)
        // A little later than the thread's own limit, whose error is more precise.
        guard done.wait(timeout: .now() + seconds + 0.5) == .success else { throw late }
        return try result.withLock { $0 }.get()
    }

    private static func connect(to address: String) throws(SecretServiceError) -> BusConnection {
        do throws(BusError) {
            return try BusConnection(address)
        } catch {
            throw SecretServiceError(error)
        }
    }
}
