// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import Foundation
import CountersignTestOrigin
import Testing

@testable import CountersignClientSetup

/// Writing a bundle makes both files correct regardless of their state before, and does not touch correct files.
@Suite(.waiting) struct TrustBundleTests {
    private let folder: TemporaryFolder
    private let home: Home
    private let system: String
    private let root: Certificate
    private let anchors: [Certificate]

    init() throws {
        folder = try TemporaryFolder("bundle")
        home = Home(path: folder.file("home"))
        let certificates = try ["origin-root", "client-a-root", "unknown-root"].map { name in
            try #require(try Certificate.readPEM(TextFile.bytes(Self.fixture("\(name).pem"))).first)
        }
        root = certificates[0]
        anchors = [certificates[1]]
        system = try folder.write("system.pem", certificates[2].pem + certificates[1].pem)
    }

    private static func fixture(_ name: String) -> String {
        let tests = (#filePath as NSString).deletingLastPathComponent
        return "\(tests)/../../Certs/dev/pki/\(name)"
    }

    /// With `later`, the clock is two seconds ahead, so that files written before are older than a second.
    private func bundle(later: Bool = false) -> TrustBundle {
        TrustBundle(home: home, environment: ["SSL_CERT_FILE": system]) { Int64(time(nil)) + (later ? 2 : 0) }
    }

    private func write(later: Bool = false, anchors: [Certificate]? = nil) throws {
        try bundle(later: later).write(root: root, anchors: anchors ?? self.anchors)
    }

    private var contents: [[UInt8]] { [home.bundle.path, home.javaBundle.path].map(TextFile.bytes) }

    /// The files' inodes, which change with each replacement.
    private func inodes() throws -> [Int] {
        try [home.bundle.path, home.javaBundle.path].map { path in
            try #require(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int)
        }
    }

    /// The expected contents, generated from the certificates.
    private func expected() throws -> [[UInt8]] {
        let text = TextFile.bytes(system) + Array((anchors + [root]).map(\.pem).joined().utf8)
        return [text, JavaTrustStore.pkcs12(of: try Certificate.readPEM(text))]
    }

    @Test func correctFilesAreNotTouched() throws {
        try write()
        #expect(contents == (try expected()))
        let before = try inodes()
        try write()
        #expect(try inodes() == before)
    }

    enum Damage: CaseIterable {
        case missing, empty, truncated, oneByte, longer
    }

    /// As a crash between the two files, or another program, may leave them behind.
    @Test(arguments: Damage.allCases, [([0], false), ([1], false), ([0, 1], false), ([0], true), ([1], true)])
    func damagedFilesAreWrittenAgain(_ damage: Damage, _ which: (files: [Int], later: Bool)) throws {
        let (files, later) = which
        try write()
        try write(later: later)
        for index in files {
            let path = [home.bundle.path, home.javaBundle.path][index]
            var bytes = TextFile.bytes(path)
            switch damage {
            case .missing:
                try FileManager.default.removeItem(atPath: path)
                continue
            case .empty: bytes = []
            case .truncated: bytes.removeLast(bytes.count / 2)
            case .oneByte: bytes[bytes.count / 2] ^= 1
            case .longer: bytes.append(0x0A)
            }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }
        try write(later: later)
        #expect(contents == (try expected()))
    }

    @Test(arguments: [false, true])
    func aChangedSystemFileIsUsed(later: Bool) throws {
        for _ in 0..<2 { try write(later: later) }
        try folder.write("system.pem", anchors[0].pem)
        try write(later: later)
        #expect(contents == (try expected()))
    }

    @Test func aRemovedAnchorIsRemovedFromTheBundle() throws {
        for _ in 0..<2 { try write(later: true) }
        try write(later: true, anchors: [])
        #expect(contents[0] == TextFile.bytes(system) + Array(root.pem.utf8))
    }

    /// Files are not read if their metadata is unchanged, even if their contents are wrong.
    @Test func unchangedFilesAreNotRead() throws {
        try write()
        for path in [home.bundle.path, home.javaBundle.path] { try Data().write(to: URL(fileURLWithPath: path)) }
        let state = try #require(bundle(later: true).state(of: anchors + [root]))
        try home.bundleState.replace(with: state)
        try write(later: true)
        #expect(contents == [[], []])
        // The metadata is not relied on in the second of a change.
        let sooner = TrustBundle(home: home, environment: ["SSL_CERT_FILE": system]) { 0 }
        #expect(sooner.state(of: anchors + [root]) == nil)
        try sooner.write(root: root, anchors: anchors)
        #expect(contents == (try expected()))
    }

    /// Text that the fast PEM scanner does not accept is parsed by OpenSSL each time.
    @Test(arguments: ["\r\n", " \n"])
    func aSystemFileWithUnusualLineEndsIsRead(_ lineEnd: String) throws {
        try folder.write("system.pem", TextFile.text(system).replacing("\n", with: lineEnd))
        for _ in 0..<2 {
            try write()
            #expect(contents == (try expected()))
        }
    }

    @Test func aFaultySystemFileIsNamedInTheErrorAndChangesNothing() throws {
        try write()
        let before = contents
        try folder.write("system.pem", "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n")
        let error = #expect(throws: CountersignError.self) { try write() }
        #expect(error?.detail.contains(system) == true)
        #expect(contents == before)
    }

    @Test func withoutSystemAnchorsTheBundleHasOnlyTheHomes() throws {
        try folder.write("system.pem", "")
        try write()
        #expect(contents == (try expected()))
    }
}
