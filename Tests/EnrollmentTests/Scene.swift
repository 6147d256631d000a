// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import Foundation
import CountersignTestOrigin
import Testing

@testable import CountersignEnrollment

/// An EST server and the configuration of its client, for one test.
struct Scene {
    let server: ESTServer
    let clock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }

    init(_ control: String = "{}") throws { server = try ESTServer(control) }

    var endpoint: ESTEndpoint { get throws { try ESTEndpoint(parsing: server.address()) } }

    func certificate(_ name: String) throws -> Certificate {
        try #require(try Certificate.readPEM(TextFile.bytes(server.certificate(name))).first)
    }

    func access(
        anchors: [String] = ["ca"], password: String? = nil, identity: Identity? = nil
    ) throws -> ESTAuthentication {
        let credential = password.map {
            PasswordCredential(name: "est", user: ESTServer.user, password: Secret(utf8: $0), generation: 1)
        }
        return ESTAuthentication(anchors: try anchors.map(certificate), credential: credential, identity: identity)
    }

    func client(
        anchors: [String] = ["ca"], password: String? = nil, identity: Identity? = nil, at address: String? = nil,
        limit: Duration = .seconds(30)
    ) throws -> ESTClient {
        try ESTClient(
            endpoint: try ESTEndpoint(parsing: address ?? server.address()),
            access: try access(anchors: anchors, password: password, identity: identity), limit: limit, now: clock)
    }

    func request(
        key: PrivateKey, attributes: CSRAttributes? = nil, previous: [UInt8]? = nil
    ) throws -> ESTRequest {
        ESTRequest(
            subject: try SubjectName("CN=jdoe,O=Test"), attributes: attributes, key: key, previous: previous)
    }

    /// A complete enrolment: CA certificates, attributes, certificate.
    func identity(
        named name: String = "work", from client: ESTClient, _ kind: ESTClient.Enrollment = .enroll,
        key specification: KeySpecification = .ecP256
    ) async throws -> Identity {
        let authorities = try await client.certificationAuthorities()
        let attributes = try await client.requestAttributes()
        let key = try PrivateKey.generate(specification)
        let outcome = try await client.enroll(
            kind, try request(key: key, attributes: attributes), authorities: authorities)
        guard case .issued(let chain) = outcome else { throw HarnessError("not issued: \(outcome)") }
        return try Identity(name: name, chain: chain, key: key)
    }

    /// The error of one enrolment with `client`, nil if it succeeds.
    func failure(of client: ESTClient, key: PrivateKey? = nil) async throws -> EnrollmentError? {
        do {
            let key = if let key { key } else { try PrivateKey.generate(.ecP256) }
            let authorities = try await client.certificationAuthorities()
            _ = try await client.enroll(.enroll, try request(key: key), authorities: authorities)
            return nil
        } catch let error as EnrollmentError {
            return error
        }
    }

    /// Verifies with the openssl command.
    func openssl(_ arguments: String...) throws -> CommandResult {
        try Command.run(try Tool.path("openssl"), arguments, in: server.folder)
    }
}
