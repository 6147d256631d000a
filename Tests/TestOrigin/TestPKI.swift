// SPDX-License-Identifier: Apache-2.0

/// The certificates of one test run. Servers/make_pki.py creates and lists them.
package final class TestPKI: Sendable {
    private static let made = Result { try TestPKI() }

    /// The instance of this test run.
    package static var shared: TestPKI { get throws { try made.get() } }

    private let folder: TemporaryFolder

    private init() throws {
        folder = try TemporaryFolder("pki")
        let done = try Command.run(
            try Tool.python(), [Tool.server("make_pki.py"), folder.path], in: folder)
        guard done.status == 0 else { throw HarnessError("make_pki.py: \(done.said)") }
    }

    package func certificate(_ name: String) -> String { folder.file("\(name).pem") }

    package func key(_ name: String) -> String { folder.file("\(name).key") }

    package func pkcs12(_ name: String) -> String { folder.file("\(name).p12") }

    /// The password of the PKCS#12 files.
    package var password: String { folder.text("p12.password") }

    /// The trust anchor of the valid origins.
    package var originAnchor: String { certificate("origin-ca") }
}
