// SPDX-License-Identifier: Apache-2.0

import Certificates
import Foundation
import Testing

struct TrustAnchorsTests {
    @Test func withoutAnAnchorNothingIsTrusted() throws {
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false, additional: []))
        let trust = try verifier.evaluate(chain: TestPKI.chain("origin-ec"), host: "localhost", at: TestPKI.now)
        #expect(trust.reasons == [.unknownIssuer])
    }

    @Test func anAnchorGivenTwiceIsNoError() throws {
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

    @Test func aMissingSystemFileIsNoError() async {
        await #expect(processExitsWith: .success) {
            setenv("SSL_CERT_FILE", "/nonexistent", 1)
            setenv("SSL_CERT_DIR", "/nonexistent", 1)
            let anchors = try TrustAnchors(system: true, additional: TestPKI.chain("origin-root"))
            let chain = try TestPKI.chain("origin-ec")
            guard ChainVerifier(anchors: anchors).evaluate(chain: chain, host: "localhost", at: TestPKI.now).isTrusted
            else { exit(1) }
        }
    }
}
