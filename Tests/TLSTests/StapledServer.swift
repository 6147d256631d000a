// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import CountersignTestOrigin
import Testing

@testable import CountersignTLS

/// Servers with certificates of an OCSP authority: `good`, `bad`, which is revoked, and `demanding`, which requires
/// stapling. Responses are valid for a day from now on.
struct StapledServer {
    static var today: Int64 { Int64(Date().timeIntervalSince1970) }

    let authority: OpenSSLAuthority

    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make("responder", of: "root", OpenSSLAuthority.responder)
        try authority.make("good", of: "root", OpenSSLAuthority.server)
        try authority.make("bad", of: "root", OpenSSLAuthority.server)
        try authority.make("demanding", of: "root", OpenSSLAuthority.server + [OpenSSLAuthority.mustStaple])
        try authority.revoke("bad", of: "root")
    }

    func response(about name: String) throws -> [UInt8] {
        try authority.makeResponse("\(name).der", about: name, of: "root", signedBy: "responder")
    }

    func leaf(_ name: String) throws -> Certificate {
        try #require(try Certificate.readPEM(authority.bytes("\(name).pem")).first)
    }

    func client(version: Int32, at time: Int64 = today) throws -> TLSClientContext {
        let anchors = try TrustAnchors(system: false, additional: [leaf("root")])
        return try TLSClientContext(
            verifier: ChainVerifier(anchors: anchors), now: { time }, versions: version...version)
    }

    /// A server with the certificate of `name`, which optionally requests certificates of client root A.
    func server(_ name: String, asksForCertificate: Bool = false) throws -> TLSServerContext {
        let file = try IdentityFile.read(
            authority.bytes("\(name).key.pem") + authority.bytes("\(name).pem"), password: nil)
        let asked = try TLSServerContext.ClientCertificates(
            authorities: Fixture.chain("client-a-root"), isRequired: false)
        return try TLSServerContext(
            chain: [leaf(name)], key: file.key, host: "localhost", clientCertificates: asksForCertificate ? asked : nil)
    }

    func pair(
        _ name: String, staple: [UInt8]?, version: Int32, at time: Int64 = today, asksForCertificate: Bool = false,
        asksAboutTrust: Bool = false, chunk: Int = .max
    ) throws -> EnginePair {
        let pair = try EnginePair(
            client: client(version: version, at: time), server: server(name, asksForCertificate: asksForCertificate),
            asksAboutTrust: asksAboutTrust, chunk: chunk)
        if let staple { pair.staple(staple) }
        return pair
    }

    /// `openssl s_server` with the certificate of `name` and the stapled response `staple`.
    func openSSLServer(_ name: String, staple: [UInt8]?, _ arguments: [String]) throws -> OpenSSLServer {
        let file = authority.path("\(name).staple")
        if let staple { try Data(staple).write(to: URL(fileURLWithPath: file)) }
        return try OpenSSLServer(
            certificate: authority.path("\(name).pem"), key: authority.path("\(name).key.pem"),
            arguments: (staple == nil ? [] : ["-status_file", file]) + arguments)
    }
}
