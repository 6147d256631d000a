// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Foundation
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// Success cases: every operation against a server that issues and verifies certificates with the openssl command.
@Suite(.serialized) struct ESTClientTests {
    @Test(arguments: KeySpecification.allCases)
    func aCertificateIsEnrolledForEveryKindOfKey(specification: KeySpecification) async throws {
        let scene = try Scene()
        let identity = try await scene.identity(from: try scene.client(), key: specification)
        try scene.server.folder.write("leaf.pem", identity.leaf.pem)
        let verified = try scene.openssl(
            "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", scene.server.certificate("ca"),
            scene.server.folder.file("leaf.pem"))
        #expect(verified.status == 0, "\(verified.said)")
        #expect(identity.chain.count == 1)
        #expect(identity.leaf.subject == "CN=jdoe,O=Test")
        let request = try scene.openssl(
            "req", "-inform", "DER", "-in", scene.server.folder.file("last.csr"), "-verify", "-noout")
        #expect(request.status == 0, "\(request.said)")
        #expect(scene.server.requests("simpleenroll").map(\.contentType) == ["application/pkcs10"])
        #expect(scene.server.requests("simpleenroll").map(\.linked) == [nil])
    }

    @Test(arguments: ["none", "lf", "crlf"])
    func base64IsReadWithAndWithoutLineBreaks(breaks: String) async throws {
        let scene = try Scene(#"{"lineBreaks": "\#(breaks)", "csrattrs": "MAkGBysGAQEBARY="}"#)
        let client = try scene.client()
        #expect(try await client.requestAttributes() != nil)
        #expect(try await scene.identity(from: client).leaf.subject == "CN=jdoe,O=Test")
    }

    @Test(arguments: [#"\u0000"#, #"\r\n\u0000"#, #" \t\u000b\u000c\n"#])
    func attributesMayEndWithNULAndWhiteSpace(tail: String) async throws {
        let asked = "MCYGBysGAQEBARYGCSqGSIb3DQEJBwYFK4EEACIGCWCGSAFlAwQCAg=="
        let scene = try Scene(#"{"csrattrs": "\#(asked)", "lineBreaks": "none", "attributesTail": "\#(tail)"}"#)
        let attributes = try #require(try await scene.client().requestAttributes())
        #expect(attributes.keySpecification == .ecP384 && attributes.wantsLinking)
        #expect(attributes.ignoredNames == ["1.3.6.1.1.1.1.22"])
    }

    /// OpenSSL's decoder for base64 in lines, which the server uses, reads nothing if a line is longer.
    @Test(arguments: [KeySpecification.ecP256, .ecP384, .rsa3072], [false, true])
    func requestsAreSentInLinesOf64(specification: KeySpecification, isLinked: Bool) async throws {
        let asked = isLinked ? #""MAsGCSqGSIb3DQEJBw==""# : "null"
        let scene = try Scene(#"{"needsLines": true, "linking": \#(isLinked), "csrattrs": \#(asked)}"#)
        let identity = try await scene.identity(from: try scene.client(), key: specification)
        #expect(identity.leaf.subject == "CN=jdoe,O=Test")
        #expect(scene.server.requests("simpleenroll").map(\.linked) == [isLinked ? true : nil])
    }

    @Test func extraCertificatesFromTheServerBecomeTheChain() async throws {
        let scene = try Scene(#"{"issuer": "sub-ca", "chain": true, "cacerts": ["ca"]}"#)
        let identity = try await scene.identity(from: try scene.client())
        #expect(identity.chain.map(\.subject) == ["CN=jdoe,O=Test", "CN=EST Sub CA,O=Test"])
    }

    @Test func anIssuerThatOnlyTheAuthoritiesHaveIsFound() async throws {
        let scene = try Scene(#"{"issuer": "sub-ca", "cacerts": ["sub-ca", "ca"]}"#)
        let identity = try await scene.identity(from: try scene.client())
        #expect(identity.chain.map(\.subject) == ["CN=jdoe,O=Test", "CN=EST Sub CA,O=Test"])
    }

    @Test func aLabelIsPartOfTheAddress() async throws {
        let scene = try Scene(#"{"label": "people"}"#)
        let client = try scene.client(at: scene.server.address(label: "people"))
        _ = try await scene.identity(from: client)
        #expect(scene.server.requests("simpleenroll").map(\.path) == ["/.well-known/est/people/simpleenroll"])
        await #expect(throws: EnrollmentError(.refused, "")) { try await scene.client().certificationAuthorities() }
    }

    @Test func aHostMatchesItsName() async throws {
        let scene = try Scene()
        let client = try scene.client(at: "https://localhost:\(scene.server.port)")
        #expect(try await client.certificationAuthorities().certificates == [try scene.certificate("ca")])
    }

    @Test func oneConnectionServesAllCalls() async throws {
        let scene = try Scene()
        _ = try await scene.identity(from: try scene.client())
        #expect(Set(scene.server.log.map(\.connection)) == [1])
    }

    @Test(arguments: ["1.2", "1.3"])
    func anIdentityRenewsItselfOverTLS(version: String) async throws {
        let scene = try Scene(#"{"tls": "\#(version)", "clientCertificate": "optional", "auth": "basic"}"#)
        let first = try await scene.identity(from: try scene.client(password: ESTServer.password))
        let renewing = try scene.client(identity: first)
        let authorities = try await renewing.certificationAuthorities()
        let key = try PrivateKey.generate(.ecP256)
        let outcome = try await renewing.enroll(
            .reenroll, ESTRequest(renewing: first.leaf, attributes: nil, key: key), authorities: authorities)
        guard case .issued(let chain) = outcome else { throw HarnessError("\(outcome)") }
        #expect(chain.first?.subjectDER == first.leaf.subjectDER)
        #expect(chain.first != first.leaf)
        let asked = scene.server.requests("simplereenroll")
        #expect(asked.map(\.client) == ["CN=jdoe,O=Test"])
        #expect(asked.map(\.authorization) == [""])
    }

    @Test func identityAndCredentialAreBothSentIfBothAreRequested() async throws {
        let scene = try Scene(
            #"{"clientCertificate": "optional", "auth": "basic", "certificateIsEnough": false}"#)
        let first = try await scene.identity(from: try scene.client(password: ESTServer.password))
        _ = try await scene.identity(from: try scene.client(password: ESTServer.password, identity: first), .reenroll)
        let last = try #require(scene.server.requests("simplereenroll").last)
        #expect(last.client == "CN=jdoe,O=Test")
        #expect(last.user == ESTServer.user)
    }

    @Test(arguments: ["1.2", "1.3"])
    func aNewIdentityIsProvedByAHandshake(version: String) async throws {
        let scene = try Scene(#"{"tls": "\#(version)", "clientCertificate": "optional"}"#)
        let identity = try await scene.identity(from: try scene.client())
        #expect(try await scene.client(identity: identity).proveIdentity())
        #expect(scene.server.log.last?.client == "CN=jdoe,O=Test")
        try scene.server.set(#"{"clientCertificate": "none"}"#)
        #expect(try await !scene.client(identity: identity).proveIdentity())
    }

    @Test(arguments: [
        (#""3""#, 3), (#""999999999999999999999""#, 86_400), (#""86401""#, 86_400), (#""0""#, 1), ("null", 60),
        (#""Thu, 01 Jan 1970 00:00:00 GMT""#, 1), (#""Fri, 01 Jan 2100 00:00:00 GMT""#, 86_400), (#""soon""#, 60),
    ])
    func aPendingAnswerHasItsSeconds(value: String, seconds: Int64) async throws {
        let scene = try Scene(#"{"pending": 1, "retryAfter": \#(value)}"#)
        let client = try scene.client()
        let key = try PrivateKey.generate(.ecP256)
        let authorities = try await client.certificationAuthorities()
        let first = try await client.enroll(.enroll, try scene.request(key: key), authorities: authorities)
        guard case .pending(seconds, let request) = first else {
            Issue.record("\(first)")
            return
        }
        #expect(TextFile.bytes(scene.server.folder.file("last.csr")) == request)
        let again = try scene.request(key: key, previous: request)
        let second = try await client.enroll(.enroll, again, authorities: authorities)
        guard case .issued(let chain) = second else {
            Issue.record("\(second)")
            return
        }
        #expect(chain.first.map(key.matches) == true)
        #expect(TextFile.bytes(scene.server.folder.file("last.csr")) == request)
    }

    @Test func nginxAcceptsWhatWasEnrolled() async throws {
        let scene = try Scene(#"{"issuer": "client-ca-a", "cacerts": ["ca", "client-ca-a"]}"#)
        let pki = try TestPKI.shared
        try scene.server.add(
            authority: "client-ca-a", certificate: pki.certificate("client-ca-a"), key: pki.key("client-ca-a"))
        let identity = try await scene.identity(from: try scene.client(anchors: ["ca", "client-ca-a"]))
        let folder = try TemporaryFolder("nginx-client")
        try folder.write("leaf.pem", identity.chain.map(\.pem).joined())
        try folder.write("key.der", identity.key.pkcs8.withBytes { Array($0) })
        let nginx = try NginxOrigin()
        for port in [nginx.mutual12Port, nginx.mutual13Port] {
            let said = try Command.run(
                try Tool.path("curl"),
                [
                    "-sS", "--noproxy", "*", "--cacert", pki.originAnchor, "--cert", folder.file("leaf.pem"),
                    "--key-type", "DER", "--key", folder.file("key.der"), "--resolve",
                    "test.localhost:\(port):127.0.0.1", "https://test.localhost:\(port)/who",
                ], in: folder)
            #expect(said.output.hasSuffix("CN=jdoe,O=Test\n"), "\(said.said)")
        }
    }

    @Test func aPrivateKeyIsNeverWrittenToAFile() async throws {
        let start = Date(timeIntervalSinceNow: -1)
        let scene = try Scene(#"{"clientCertificate": "optional"}"#)
        let first = try await scene.identity(from: try scene.client())
        let second = try await scene.identity(from: try scene.client(identity: first), .reenroll)
        let decoy = try PrivateKey.generate(.ecP256)
        try scene.server.folder.write("decoy", try decoy.pkcs8.withBytes { Array($0) })
        #expect(try Self.places(of: decoy, since: start).count == 1)
        #expect(try Self.places(of: first.key, since: start).isEmpty)
        #expect(try Self.places(of: second.key, since: start).isEmpty)
    }

    /// The files in this run's folders, written since `start`, that contain the P-256 key, as DER or PEM. Not the large
    /// ones, which other tests send and receive: reading them all takes minutes.
    private static func places(of key: PrivateKey, since start: Date) throws -> [String] {
        let der = try key.pkcs8.withBytes { Array($0) }
        // The private value is in the middle of the DER; the public value after it is in every certificate.
        let forms = [Array(der[36..<68]), Array(Base64.encode(der).utf8.prefix(90).suffix(40))]
        let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        return try FileManager.default.contentsOfDirectory(atPath: base).filter { $0.hasPrefix("countersign-") }
            .flatMap { folder in
                (FileManager.default.enumerator(atPath: "\(base)/\(folder)") ?? .init()).map {
                    "\(base)/\(folder)/\($0)"
                }
            }
            .filter { file in
                let attributes = try? FileManager.default.attributesOfItem(atPath: file)
                guard let written = attributes?[.modificationDate] as? Date, written >= start,
                    let size = attributes?[.size] as? Int, size < 1 << 20
                else { return false }
                let bytes = TextFile.bytes(file).filter { $0 != 0x0A }
                let whole = TextFile.bytes(file)
                return whole.firstRange(of: forms[0]) != nil || bytes.firstRange(of: forms[1]) != nil
            }
    }

    @Test func aCancelledCallEndsBeforeItsLimit() async throws {
        let scene = try Scene(#"{"fault": "slow"}"#)
        let client = try scene.client()
        let call = Task { try await client.certificationAuthorities() }
        _ = poll { scene.server.log.isEmpty ? nil : true }
        call.cancel()
        await #expect(throws: EnrollmentError(.cancelled, "")) { try await call.value }
    }
}
