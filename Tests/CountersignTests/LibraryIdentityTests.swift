// SPDX-License-Identifier: Apache-2.0

import CountersignCCurl
import CountersignCOpenSSL
import CountersignTestOrigin
import Testing

@testable import Countersign

/// A client identity in an OpenSSL context of another library.
@Suite(.waiting) struct LibraryIdentityTests {
    private static func identity(_ name: String) async throws -> ClientIdentity {
        let controller = try LibraryHome("https://git.corp.example\n", identities: [name]).controller()
        let challenge = AuthenticationChallenge(protectionSpace: .git(.clientCertificate))
        guard case (.useCredential, .identity(let identity)?) = await controller.handle(challenge) else {
            throw HarnessError("no identity \(name)")
        }
        return identity
    }

    @Test func aContextHasTheKeyAndTheChain() async throws {
        let identity = try await Self.identity("laptop")
        let context = try #require(SSL_CTX_new(TLS_client_method()))
        defer { SSL_CTX_free(context) }
        try identity.install(into: context)
        #expect(SSL_CTX_check_private_key(context) == 1)
        #expect(identity.chainPEM.split(separator: "-----BEGIN CERTIFICATE-----").count == identity.chain.count)
        #expect(identity.description == "identity \"laptop\" (CN=laptop,O=Test)")
        // Another identity replaces it.
        try await Self.identity("badge").install(into: context)
        #expect(SSL_CTX_check_private_key(context) == 1)
    }

    @Test func libcurlPresentsTheIdentity() async throws {
        let identity = try await Self.identity("laptop")
        let nginx = try NginxOrigin()
        let handle = try #require(csn_curl_easy_init())
        defer { csn_curl_easy_cleanup(handle) }
        let box = Box(identity)
        var body: [UInt8] = []
        let status = withExtendedLifetime(box) {
            withUnsafeMutablePointer(to: &body) { body in
                csn_curl_set_string(handle, CURLOPT_URL, "https://open.test.localhost:\(nginx.mutual13Port)/who")
                csn_curl_set_string(handle, CURLOPT_CAINFO, (try? TestPKI.shared.originAnchor) ?? "")
                csn_curl_set_tls_context(
                    handle,
                    { _, context, box in
                        guard let context, let box else { return CURLE_SSL_CERTPROBLEM }
                        let identity = Unmanaged<Box>.fromOpaque(box).takeUnretainedValue().identity
                        do {
                            try identity.install(into: OpaquePointer(context))
                            return CURLE_OK
                        } catch {
                            return CURLE_SSL_CERTPROBLEM
                        }
                    }, Unmanaged.passUnretained(box).toOpaque())
                csn_curl_set_write(
                    handle,
                    { bytes, size, count, body in
                        guard let bytes, let body else { return 0 }
                        bytes.withMemoryRebound(to: UInt8.self, capacity: size * count) {
                            body.assumingMemoryBound(to: [UInt8].self).pointee += UnsafeBufferPointer(
                                start: $0, count: size * count)
                        }
                        return size * count
                    }, body)
                return csn_curl_easy_perform(handle)
            }
        }
        #expect(status == CURLE_OK)
        #expect(String(decoding: body, as: UTF8.self) == "TLSv1.3 CN=laptop,O=Test\n")
    }

    private final class Box {
        let identity: ClientIdentity
        init(_ identity: ClientIdentity) { self.identity = identity }
    }
}
