// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import Foundation
import Testing

@testable import CountersignTLS

/// The certificates of `Certs/dev/make`, and contexts with them.
enum Fixture {
    /// 2026-01-01, when all certificates are valid, except those that are expired on purpose.
    static let now: Int64 = 1_767_225_600

    static let bothVersions = [TLS1_2_VERSION, TLS1_3_VERSION]

    static func path(_ name: String) -> String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Certs/dev/pki/\(name).pem").path
    }

    static func chain(_ name: String) throws -> [Certificate] {
        try Certificate.readPEM(Array(Data(contentsOf: URL(fileURLWithPath: path(name)))))
    }

    static func leaf(_ name: String) throws -> Certificate { try #require(try chain(name).first) }

    static func identity(_ name: String) throws -> Identity {
        let key = try Data(contentsOf: URL(fileURLWithPath: path(name + ".key")))
        let file = try IdentityFile.read(Array(key + Data(contentsOf: URL(fileURLWithPath: path(name)))), password: nil)
        return try Identity(name: name, chain: chain(name), key: file.key)
    }

    /// A client that trusts `anchors`.
    static func client(
        version: Int32? = nil, trusting anchors: [String] = ["origin-root"], at time: Int64 = now
    ) throws -> TLSClientContext {
        let anchors = try TrustAnchors(system: false, additional: anchors.flatMap { try chain($0) })
        return try TLSClientContext(
            verifier: ChainVerifier(anchors: anchors), now: { time },
            versions: version.map { $0...$0 } ?? SSLContext.versions)
    }

    /// A server with the chain of `name`, which requests client certificates of `authorities` if there are any.
    static func server(
        _ name: String = "origin-ec", host: String? = "localhost", version: Int32? = nil,
        authorities: [String] = [], isRequired: Bool = false
    ) throws -> TLSServerContext {
        let shown = try identity(name)
        let asked = try TLSServerContext.ClientCertificates(
            authorities: authorities.flatMap { try chain($0) }, isRequired: isRequired)
        return try TLSServerContext(
            chain: shown.chain, key: shown.key, host: host, clientCertificates: authorities.isEmpty ? nil : asked,
            versions: version.map { $0...$0 } ?? SSLContext.versions)
    }

    /// Pseudo-random bytes, the same for the same seed.
    static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var state = seed
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            for index in 0..<count {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                buffer[index] = UInt8(truncatingIfNeeded: state >> 56)
            }
            initialized = count
        }
    }
}
