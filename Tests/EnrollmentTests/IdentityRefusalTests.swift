// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// A server that rejects the identity, which can then no longer renew itself.
@Suite(.serialized) struct IdentityRefusalTests {
    @Test(arguments: ["1.2", "1.3"], [0, 2])
    func anExpiredIdentityIsRefused(version: String, tickets: Int) async throws {
        let scene = try Scene(#"{"notAfter": "20490101000000Z"}"#)
        let identity = try await scene.expiredIdentity()
        try scene.server.set(
            #"{"tls": "\#(version)", "tickets": \#(tickets), "clientCertificate": "required"}"#)
        for _ in 0..<10 {
            let error = try await scene.failure(of: try scene.client(identity: identity))
            #expect(error?.code == .identityRefused, "\(error?.detail ?? "")")
            #expect(error?.detail.contains("certificate expired") == true, "\(error?.detail ?? "")")
            #expect(error?.detail.contains("\"work\" (CN=jdoe,O=Test, expired ") == true, "\(error?.detail ?? "")")
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func aRevokedIdentityIsRefused(version: String) async throws {
        let scene = try Scene()
        let identity = try await scene.identity(from: try scene.client())
        try scene.server.set(
            #"{"tls": "\#(version)", "clientCertificate": "optional", "revoked": ["\#(identity.leaf.serialNumberHex)"]}"#
        )
        let client = try scene.client(identity: identity)
        await #expect(throws: EnrollmentError(.identityRefused, "")) { try await client.proveIdentity() }
        let error = try await scene.failure(of: client)
        #expect(error?.code == .identityRefused)
        #expect(error?.detail.contains("certificate revoked") == true, "\(error?.detail ?? "")")
    }

    @Test(arguments: ["1.2", "1.3"])
    func anIdentityOfAnotherAuthorityIsRefused(version: String) async throws {
        let scene = try Scene()
        let identity = try await scene.identity(from: try scene.client())
        try scene.server.set(
            #"{"tls": "\#(version)", "clientCertificate": "optional", "clientAuthorities": ["other-ca"]}"#)
        let error = try await scene.failure(of: try scene.client(identity: identity))
        #expect(error?.code == .identityRefused)
        #expect(error?.detail.contains("unknown CA") == true, "\(error?.detail ?? "")")
    }

    @Test(arguments: ["1.2", "1.3"])
    func aServerThatRequiresAnIdentityIsReported(version: String) async throws {
        let scene = try Scene(#"{"tls": "\#(version)", "clientCertificate": "required"}"#)
        let error = try await scene.failure(of: try scene.client())
        #expect(error?.code == .unauthorized)
        #expect(error?.detail.contains("the server requires an identity, and none was given") == true)
    }

    /// OpenSSL, and with it libest, ends a TLS 1.2 handshake if the client's key is on a curve that it does not offer.
    @Test func anIdentityWhoseKeyTheServerDoesNotSupportIsUnusable() async throws {
        let scene = try Scene()
        let identity = try await scene.identity(from: try scene.client(), key: .ecP384)
        try scene.server.set(#"{"tls": "1.2", "clientCertificate": "optional", "curve": "prime256v1"}"#)
        let error = try await scene.failure(of: try scene.client(identity: identity))
        #expect(error?.code == .identityUnusable, "\(error?.detail ?? "")")
        #expect(error?.detail.contains("\"work\" (CN=jdoe,O=Test)") == true, "\(error?.detail ?? "")")
        #expect(error?.detail.contains("illegal parameter") == true, "\(error?.detail ?? "")")
        #expect(error?.isTransient == false)
    }

    @Test(arguments: ["1.2", "1.3"])
    func aConnectionThatEndsWithTheIdentityMayConcernIt(version: String) async throws {
        let scene = try Scene()
        let identity = try await scene.identity(from: try scene.client())
        try scene.server.set(#"{"tls": "\#(version)", "clientCertificate": "optional", "hangsUp": true}"#)
        let error = try #require(try await scene.failure(of: try scene.client(identity: identity)))
        #expect(error.mayConcernIdentity && error.isTransient, "\(error)")
        #expect(error.hint?.contains("the server may have refused it without a response") == true, "\(error)")
        // Without an identity, and once the server has accepted it, a lost connection is only that.
        try scene.server.set(
            #"{"tls": "\#(version)", "clientCertificate": "optional", "fault": "reset", "faultFor": "simpleenroll"}"#)
        for identity in [nil, identity] {
            let error = try #require(try await scene.failure(of: try scene.client(identity: identity)))
            #expect(error.code == .cut && !error.mayConcernIdentity, "\(error)")
        }
    }

    @Test func nginxThatSaysItInHTTPIsUnderstood() async throws {
        let scene = try Scene(#"{"notAfter": "20490101000000Z"}"#)
        let identity = try await scene.expiredIdentity()
        let pki = try TestPKI.shared
        let nginx = try NginxOrigin()
        let anchor = try #require(try Certificate.readPEM(TextFile.bytes(pki.originAnchor)).first)
        for port in [nginx.mutual12Port, nginx.mutual13Port] {
            let client = try ESTClient(
                endpoint: try ESTEndpoint(parsing: "https://test.localhost:\(port)"),
                access: ESTAuthentication(anchors: [anchor], identity: identity), now: scene.clock)
            let error = await #expect(throws: EnrollmentError.self) { try await client.certificationAuthorities() }
            #expect(error?.code == .identityRefused, "\(error?.detail ?? "")")
        }
    }
}

extension Scene {
    /// An expired identity from the server's CA.
    func expiredIdentity() async throws -> Identity {
        let key = try PrivateKey.generate(.ecP256)
        try server.folder.write("old.csr", try request(key: key).make(nil))
        let made = try openssl(
            "req", "-inform", "DER", "-in", server.folder.file("old.csr"), "-out", server.folder.file("old.req"))
        #expect(made.status == 0, "\(made.said)")
        try server.folder.write("old/index", "")
        try server.folder.write(
            "old.conf",
            """
            [ca]
            default_ca=d
            [d]
            database=\(server.folder.file("old/index"))
            new_certs_dir=\(server.folder.file("old"))
            rand_serial=yes
            certificate=\(server.certificate("ca"))
            private_key=\(server.key("ca"))
            default_md=sha256
            policy=p
            copy_extensions=copy
            [p]
            commonName=optional
            organizationName=optional

            """)
        let issued = try openssl(
            "ca", "-batch", "-notext", "-config", server.folder.file("old.conf"), "-in", server.folder.file("old.req"),
            "-out", server.folder.file("old.pem"), "-preserveDN", "-startdate", "20200101000000Z", "-enddate",
            "20210101000000Z")
        #expect(issued.status == 0, "\(issued.said)")
        return try Identity(
            name: "work", chain: try Certificate.readPEM(TextFile.bytes(server.folder.file("old.pem"))), key: key)
    }
}
