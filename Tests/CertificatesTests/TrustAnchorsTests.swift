// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import Testing

struct TrustAnchorsTests {
    @Test func withoutAnAnchorNothingIsTrusted() throws {
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: []))
        let trust = try verifier.evaluate(chain: TestPKI.chain("origin-ec"), host: "localhost", at: TestPKI.now)
        #expect(trust.reasons == [.unknownIssuer])
    }

    @Test func anAnchorGivenTwiceIsNotAnError() throws {
        let root = try TestPKI.leaf("origin-root")
        #expect(try TrustAnchors(system: false, additional: [root, root]).additional.count == 2)
    }

    @Test func theSystemsAnchorsAreThoseOfTheEnvironment() async {
        await #expect(processExitsWith: .success) {
            setenv("SSL_CERT_FILE", TestPKI.path("origin-root.pem"), 1)
            setenv("SSL_CERT_DIR", "/nonexistent", 1)
            let chain = try TestPKI.chain("origin-ec")
            let withSystem = ChainVerifier(anchors: try TrustAnchors(system: true))
            let without = ChainVerifier(anchors: try TrustAnchors(system: false))
            guard withSystem.evaluate(chain: chain, host: "localhost", at: TestPKI.now).isTrusted,
                !without.evaluate(chain: chain, host: "localhost", at: TestPKI.now).isTrusted
            else { exit(1) }
        }
    }

    @Test func aMissingSystemFileIsNotAnError() async {
        await #expect(processExitsWith: .success) {
            setenv("SSL_CERT_FILE", "/nonexistent", 1)
            setenv("SSL_CERT_DIR", "/nonexistent", 1)
            let anchors = try TrustAnchors(system: true, additional: TestPKI.chain("origin-root"))
            let chain = try TestPKI.chain("origin-ec")
            guard ChainVerifier(anchors: anchors).evaluate(chain: chain, host: "localhost", at: TestPKI.now).isTrusted
            else { exit(1) }
        }
    }

    @Test func anAnchorOfTheFolderAloneIsTrusted() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let hash = try openssl("x509", "-in", TestPKI.path("origin-root.pem"), "-noout", "-subject_hash")
            try FileManager.default.copyItem(
                atPath: TestPKI.path("origin-root.pem"), toPath: folder.path("\(hash).0"))
            setenv("SSL_CERT_DIR", folder.path("."), 1)
            let chain = try TestPKI.chain("origin-ec")
            // A file with other anchors, and no file.
            for file in [TestPKI.path("client-a-root.pem"), "/nonexistent"] {
                setenv("SSL_CERT_FILE", file, 1)
                let verifier = ChainVerifier(anchors: try TrustAnchors(system: true))
                guard verifier.evaluate(chain: chain, host: "localhost", at: TestPKI.now).isTrusted else { exit(1) }
            }
        }
    }

    @Test func withoutFileAndFolderNothingIsTrusted() async {
        await #expect(processExitsWith: .success) {
            setenv("SSL_CERT_FILE", "/nonexistent", 1)
            setenv("SSL_CERT_DIR", "/nonexistent", 1)
            let verifier = ChainVerifier(anchors: try TrustAnchors(system: true))
            let trust = try verifier.evaluate(chain: TestPKI.chain("origin-ec"), host: "localhost", at: TestPKI.now)
            guard trust.reasons == [.unknownIssuer] else { exit(1) }
        }
    }

    /// Both variables are read when the anchors are created, as by X509_STORE_set_default_paths.
    @Test func theEnvironmentCountsAtTheBeginning() async {
        await #expect(processExitsWith: .success) {
            setenv("SSL_CERT_FILE", TestPKI.path("origin-root.pem"), 1)
            setenv("SSL_CERT_DIR", "/nonexistent", 1)
            let verifier = ChainVerifier(anchors: try TrustAnchors(system: true))
            setenv("SSL_CERT_FILE", "/nonexistent", 1)
            let trust = try verifier.evaluate(chain: TestPKI.chain("origin-ec"), host: "localhost", at: TestPKI.now)
            guard trust.isTrusted else { exit(1) }
        }
    }

    /// If neither variable is set, the anchors are those that `openssl verify` uses.
    @Test func theDefaultFileAndFolderAreOpenSSLs() async {
        await #expect(processExitsWith: .success) {
            unsetenv("SSL_CERT_FILE")
            unsetenv("SSL_CERT_DIR")
            let folder = try openssl("version", "-d").split(separator: "\"")[1]
            guard let text = FileManager.default.contents(atPath: "\(folder)/cert.pem") else { return }
            let anchors = try Certificate.readPEM(Array(text))
            let found = ChainVerifier(anchors: try TrustAnchors(system: true))
            let given = ChainVerifier(anchors: try TrustAnchors(system: false, additional: anchors))
            for anchor in anchors {
                let reasons = [found, given].map {
                    $0.evaluate(chain: [anchor], host: "localhost", at: TestPKI.today).reasons
                }
                guard reasons[0] == reasons[1] else { exit(1) }
            }
        }
    }
}
